"""What users see: the names of ``hf`` and of its public modules, and nothing of how the house is built."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import hybridflow as hf
from hybridflow.core.public_names import PublicNames
from tests.support.paths import ROOT

STUB = ast.parse((ROOT / "hybridflow" / "__init__.pyi").read_text(encoding="utf-8"))
IMPORTED = [(node.module, alias) for node in STUB.body if isinstance(node, ast.ImportFrom) for alias in node.names]
VALUES = [node for node in STUB.body if not isinstance(node, ast.ImportFrom)]
MODULES = {
    "aot": "Library compile",
    "applications": """ConvNeXtTiny DenseNet121 DenseNet169 DenseNet201 EfficientNetB0 EfficientNetB1 EfficientNetB2
        EfficientNetB3 EfficientNetB4 EfficientNetB5 EfficientNetB6 EfficientNetB7 InceptionV3 MobileNet
        MobileNetV2 MobileNetV3Large MobileNetV3Small ResNet101 ResNet101V2 ResNet152 ResNet152V2 ResNet50
        ResNet50V2 VGG16 VGG19 ViTB16 Xception decode_predictions preprocess_input text""",
    "callbacks": """BackupAndRestore CSVLogger Callback CallbackList EarlyStopping History LambdaCallback
        LearningRateScheduler ModelCheckpoint ReduceLROnPlateau RemoteMonitor SwapEMAWeights TensorBoard
        TerminateOnNaN""",
    "checkpoint": """Checkpoint CheckpointManager Report checkpoints latest_checkpoint load_arrays save_arrays""",
    "config": "cache_limit functions_run_eagerly get_num_threads memory_limit run_functions_eagerly set_num_threads",
    "constraints": """Constraint MaxNorm MinMaxNorm NonNeg UnitNorm get max_norm min_max_norm non_neg unit_norm""",
    "compat": "install tf uninstall v1",
    "data": """AUTOTUNE CsvDataset DataLoader Dataset FixedLenFeature FixedLenSequenceFeature FixedLengthRecordDataset
        INFINITE_CARDINALITY Iterator NumpyDataset Options TFRecordDataset TFRecordWriter TextLineDataset TextSpec
        UNKNOWN_CARDINALITY VarLenFeature default_collate encode_example make_csv_dataset parse_example
        parse_single_example""",
    "distribute": """DistributedDataset Mesh MirroredStrategy NamedSharding P PerReplica all_gather all_reduce
        all_to_all axis_index axis_size barrier broadcast get_strategy has_strategy make_mesh permute process_count
        process_index reduce_scatter shard_map""",
    "initializers": """Constant GlorotNormal GlorotUniform HeNormal HeUniform Identity Initializer LecunNormal
        LecunUniform Ones Orthogonal RandomNormal RandomUniform TruncatedNormal VarianceScaling Zeros constant get
        glorot_normal glorot_uniform he_normal he_uniform identity lecun_normal lecun_uniform ones
        orthogonal random_normal random_uniform truncated_normal variance_scaling zeros""",
    "layers": """Activation ActivityRegularization Add AdditiveAttention AlphaDropout Attention Average AveragePooling1D
        AveragePooling2D AveragePooling3D AvgPool1D AvgPool2D AvgPool3D BatchNormalization Bidirectional
        CategoryEncoding CenterCrop Concatenate Conv1D Conv1DTranspose Conv2D Conv2DTranspose Conv3D Conv3DTranspose
        ConvLSTM1D ConvLSTM2D ConvLSTM3D Convolution1D Convolution1DTranspose Convolution2D Convolution2DTranspose
        Convolution3D Convolution3DTranspose Cropping1D Cropping2D Cropping3D Dense DepthwiseConv1D DepthwiseConv2D
        Discretization Dot Dropout ELU EinsumDense Embedding Flatten GRU GRUCell GaussianDropout GaussianNoise
        GlobalAveragePooling1D GlobalAveragePooling2D GlobalAveragePooling3D GlobalAvgPool1D GlobalAvgPool2D
        GlobalAvgPool3D GlobalMaxPool1D GlobalMaxPool2D GlobalMaxPool3D GlobalMaxPooling1D GlobalMaxPooling2D
        GlobalMaxPooling3D GroupNormalization GroupQueryAttention HashedCrossing Hashing Identity Input InputLayer
        InputSpec IntegerLookup LSTM LSTMCell Lambda Layer LayerNormalization LeakyReLU Masking MaxPool1D MaxPool2D
        MaxPool3D MaxPooling1D MaxPooling2D MaxPooling3D Maximum Minimum MultiHeadAttention Multiply Normalization
        PReLU Permute RMSNormalization RNN RandomBrightness RandomContrast RandomCrop RandomFlip RandomRotation
        RandomTranslation RandomZoom ReLU RepeatVector Rescaling Reshape Resizing SeparableConv1D SeparableConv2D
        SeparableConvolution1D SeparableConvolution2D SimpleRNN SimpleRNNCell Softmax SpatialDropout1D
        SpatialDropout2D SpatialDropout3D SpectralNormalization StackedRNNCells StringLookup Subtract
        TextVectorization TimeDistributed UnitNormalization UpSampling1D UpSampling2D UpSampling3D Wrapper
        ZeroPadding1D ZeroPadding2D ZeroPadding3D""",
    "debugging": """Assert assert_all_finite assert_equal assert_greater assert_greater_equal assert_less
        assert_less_equal assert_near assert_negative assert_non_negative assert_non_positive assert_none_equal
        assert_positive assert_rank assert_rank_at_least assert_rank_in assert_scalar assert_shapes assert_type
        check_numerics disable_check_numerics enable_check_numerics""",
    "optimize": "OptimizeResult RootResult minimize root_scalar",
    "integrate": "OdeResult QuadResult odeint quad simpson solve_ivp",
    "interpolate": "CubicSpline",
    "linalg": """LinAlgError block_diag cg cholesky cholesky_solve cond cross det diagonal eig eigh eigvals eigvalsh
        expm gmres inv kron lanczos logm lstsq lu lu_factor lu_solve matmul matrix_norm matrix_power matrix_rank
        matrix_transpose norm outer pinv qr slogdet solve sqrtm svd svdvals tensordot toeplitz trace
        triangular_solve vecdot vector_norm""",
    "losses": """BinaryCrossentropy BinaryFocalCrossentropy CTC CategoricalCrossentropy CategoricalFocalCrossentropy
        CategoricalGeneralizedCrossEntropy CategoricalHinge Circle CosineSimilarity Dice Hinge Huber KLDivergence
        LogCosh Loss LossFunctionWrapper MeanAbsoluteError MeanAbsolutePercentageError MeanSquaredError
        MeanSquaredLogarithmicError Poisson SparseCategoricalCrossentropy SquaredHinge Tversky get huber
        mean_absolute_error mean_squared_error sigmoid_cross_entropy softmax_cross_entropy""",
    "memory": "Stats stats trim",
    "metrics": """AUC Accuracy BinaryAccuracy BinaryCrossentropy BinaryIoU CategoricalAccuracy
        CategoricalCrossentropy CategoricalHinge ConcordanceCorrelation CosineSimilarity F1Score FBetaScore
        FalseNegatives FalsePositives Hinge IoU KLDivergence LogCoshError Mean MeanAbsoluteError
        MeanAbsolutePercentageError MeanIoU MeanMetricWrapper MeanSquaredError MeanSquaredLogarithmicError Metric
        OneHotIoU OneHotMeanIoU PearsonCorrelation Poisson Precision PrecisionAtRecall R2Score Recall
        RecallAtPrecision RootMeanSquaredError SensitivityAtSpecificity SparseCategoricalAccuracy
        SparseCategoricalCrossentropy SparseTopKCategoricalAccuracy SpecificityAtSensitivity SquaredHinge Sum
        TopKCategoricalAccuracy TrueNegatives TruePositives binary_accuracy categorical_accuracy get
        sparse_categorical_accuracy sparse_top_k_categorical_accuracy top_k_categorical_accuracy""",
    "mixed_precision": "LossScaleOptimizer Policy global_policy set_global_policy",
    "models": "Functional Model Sequential clone_model load_model model_from_json plot_model save_model",
    "nn": """avg_pool avg_pool1d avg_pool2d avg_pool3d conv1d conv1d_transpose conv2d conv2d_transpose conv3d
        conv3d_transpose convolution ctc_loss depthwise_conv2d dropout elu gelu hard_sigmoid hard_swish huber
        l2_normalize layer_norm leaky_relu log_sigmoid log_softmax max_pool max_pool1d max_pool2d max_pool3d
        mean_absolute_error mean_squared_error moments one_hot relu relu6 rms_norm scaled_dot_product_attention selu
        separable_conv2d sigmoid sigmoid_cross_entropy silu softmax softmax_cross_entropy softplus softsign swish
        tanh""",
    "onnx": "OnnxError OnnxModel Report check load save",
    "serving": "Application Client app",
    "optimizers": """Adadelta Adafactor Adagrad Adam AdamW Adamax Ftrl Lamb LazyAdam Lion LossScaleOptimizer Muon Nadam
        Optimizer RMSprop SGD clip_by_global_norm clip_by_norm get global_norm schedules""",
    "regularizers": """L1 L1L2 L2 OrthogonalRegularizer Regularizer get l1 l1_l2 l2 orthogonal_regularizer""",
    "saved": "Loaded SavedFunction load save",
    "fft": """fft fft2 fftfreq fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft rfft2
        rfftfreq rfftn""",
    "signal": """convolve correlate dct fftconvolve frame hamming_window hann_window idct istft
        kaiser_bessel_derived_window
        kaiser_window lfilter linear_to_mel_weight_matrix overlap_and_add spectrogram stft vorbis_window""",
    "quantize": "Report convert dequantize dynamic fake_quantize find_scale prepare_training quantize static weights",
    "ragged": "Ragged concat constant lookup map_flat_values row_splits_to_segment_ids",
    "lookup": """DenseHashTable KeyValueTensorInitializer MutableHashTable StaticHashTable StaticVocabularyTable
        TextFileIndex TextFileInitializer""",
    "strings": """StringTensor as_string bytes_split constant format join length lower ngrams reduce_join
        regex_full_match regex_replace split strip substr to_hash_bucket to_hash_bucket_fast to_hash_bucket_strong
        to_number unicode_decode unicode_decode_with_offsets unicode_encode unicode_split unicode_split_with_offsets
        unicode_transcode upper""",
    "sparse": """COO CSR add concat eye from_dense from_scipy matmul multiply reduce_max reduce_min reduce_sum reorder
        sddmm softmax sparse_dense_matmul to_dense transpose""",
    "special": """beta betainc betaln digamma entr erf erfc erfcinv erfcx erfinv exp1 expi expit exprel gamma gammainc
        gammaincc gammaln i0 i0e i1 i1e j0 j1 k0 k0e k1 k1e kl_div lambertw log_expit log_ndtr log_softmax logit
        logsumexp multigammaln ndtr ndtri polygamma rel_entr sinc softmax softplus spence xlog1py xlogy zeta""",
    "summary": """SummaryWriter audio create_file_writer experimental flush graph histogram hparams image record_if
        scalar should_record_summaries text""",
    "weights": "Weights read",
    "tree": "flatten leaves map structure unflatten",
    "random": """Generator ball bernoulli beta binomial bits categorical cauchy chi_square choice dirichlet exponential
        f fold_in gamma geometric global_generator gumbel hypergeometric laplace logistic lognormal
        maxwell multinomial multivariate_normal negative_binomial normal orthogonal pareto permutation
        poisson randint rayleigh set_seed shuffle split stateless_ball stateless_bernoulli
        stateless_beta stateless_binomial stateless_categorical stateless_cauchy stateless_chi_square
        stateless_choice stateless_dirichlet stateless_exponential stateless_f stateless_gamma
        stateless_geometric stateless_gumbel stateless_hypergeometric stateless_laplace
        stateless_logistic stateless_lognormal stateless_maxwell stateless_multinomial
        stateless_multivariate_normal stateless_negative_binomial stateless_normal stateless_orthogonal
        stateless_pareto stateless_permutation stateless_poisson stateless_randint stateless_rayleigh
        stateless_shuffle stateless_student_t stateless_triangular stateless_truncated_normal
        stateless_uniform stateless_von_mises stateless_wald stateless_weibull student_t triangular
        truncated_normal uniform von_mises wald weibull""",
}


def test_names_of_the_package() -> None:
    """What editors offer, ``dir(hf)`` and ``from hybridflow import *`` are what the stub says."""
    names = [alias.asname for _, alias in IMPORTED] + [ast.unparse(n).partition(":")[0].split()[0] for n in VALUES]
    public = sorted(name for name in names if not name.startswith("_"))
    assert len(set(public)) == len(public) > 200
    assert sorted(name for name in dir(hf) if not name.startswith("_")) == hf.__all__ == public
    assert set(names) <= {*dir(hf)}
    assert {name for name in public if isinstance(getattr(hf, name), ModuleType)} == {*MODULES, "errors"}


@pytest.mark.every_case
@pytest.mark.parametrize("module, alias", IMPORTED, ids=lambda part: getattr(part, "asname", part))
def test_an_imported_name_is_what_the_stub_says(module: str, alias: ast.alias) -> None:
    own = importlib.import_module(module)
    meant = importlib.import_module(f"{module}.{alias.name}") if own is hf else getattr(own, alias.name)
    assert getattr(hf, str(alias.asname)) is meant


def test_values_are_what_the_stub_says() -> None:
    kinds = {"str": str, "float": float, "None": type(None)}
    annotated = {ast.unparse(n.target): ast.unparse(n.annotation) for n in VALUES if isinstance(n, ast.AnnAssign)}
    assert {name: kinds[kind] for name, kind in annotated.items()} == {n: type(getattr(hf, n)) for n in annotated}
    assert hf.bool is hf.bool_ and {ast.unparse(n) for n in VALUES if isinstance(n, ast.Assign)} == {"bool = bool_"}


def test_a_stub_says_nothing_but_names() -> None:
    with pytest.raises(ValueError, match="line 2 of the stub of pkg is no import of names"):
        PublicNames("pkg", "from pkg.a import b as b\nfor x in y: pass\n")


@pytest.mark.parametrize("module", MODULES)
def test_names_of_a_module(module: str) -> None:
    found = getattr(hf, module)
    assert found.__name__ == f"hybridflow.{module}"
    assert sorted(found.__all__) == MODULES[module].split()
    assert all(hasattr(found, name) for name in found.__all__)


def test_all_can_be_imported() -> None:
    namespace: dict[str, object] = {}
    exec("from hybridflow import *", namespace)
    assert namespace.keys() - {"__builtins__"} == set(hf.__all__)
    exec("import hybridflow.random, hybridflow.losses as a\nfrom hybridflow.random import normal", namespace)


USE = """
import sys
import hybridflow as hf
{first}
x = hf.ones((2, 2))
v = hf.Variable(x)
step = hf.function(lambda x: hf.nn.softmax(x @ v))
with hf.GradientTape() as tape:
    y = step(x)
tape.gradient(y, v)
hf.random.normal((2,)), hf.losses.huber(x, x)
print(*(name for name, value in vars(hf).items() if type(value) is type(sys) and not name.startswith("_")))
"""


@pytest.mark.parametrize("first", ["", "from hybridflow.random import normal", "from hybridflow.nn import relu"])
def test_rooms_are_no_attributes(first: str) -> None:
    """``hf.tensor([1])`` is not to say that a module is not callable."""
    done = subprocess.run([sys.executable, "-c", USE.format(first=first)], cwd=ROOT, capture_output=True, text=True)
    found = set(done.stdout.split())
    assert {"errors", "losses", "nn", "random"} <= found <= {*MODULES, "errors"}, done.stderr


def test_a_missing_name() -> None:
    with pytest.raises(AttributeError, match="module 'hybridflow' has no attribute 'tensor'"):
        hf.tensor  # noqa: B018


@pytest.mark.code
@pytest.mark.slow
def test_a_checker_knows_the_names(tmp_path: Path) -> None:
    """What loads on first use, and what is installed, has types; what is not there is an error."""
    program = tmp_path / "program.py"
    program.write_text(
        "import hybridflow as hf\n"
        "x: hf.Tensor = -hf.ones((3,)) + 1\n"
        "hf.Variable(1.0).assign_add(x[0]).assign(hf.nn.relu(x.T))\n"
        "with hf.GradientTape() as tape: tape.watch(x)\n"
        "hf.nonsense(1)\n"
        "x.nonsense\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "mypy", "--config-file=", "--follow-imports=silent", str(program)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    found = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert [line.partition("error: ")[2] for line in found] == [
        'Module has no attribute "nonsense"  [attr-defined]',
        '"Tensor" has no attribute "nonsense"  [attr-defined]',
    ], done.stdout


def test_names_in_lower_case() -> None:
    kernel = hf.layers.Dense(2, kernel_initializer=hf.initializers.zeros(), kernel_regularizer=hf.regularizers.l2(0.5))
    assert kernel(hf.ones((1, 3))).tolist() == [[0.0, 0.0]]
    assert hf.initializers.glorot_uniform is hf.initializers.GlorotUniform
    assert hf.constraints.max_norm(1.0).max_value == 1.0
    assert hf.initializers.ones()((2,)).tolist() == [1.0, 1.0]
