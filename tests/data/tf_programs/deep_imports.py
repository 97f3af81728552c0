from tensorflow import keras
from tensorflow.keras import layers, losses, metrics, optimizers
from tensorflow.keras.callbacks import EarlyStopping, ModelCheckpoint
from tensorflow.keras.initializers import GlorotUniform, glorot_uniform
from tensorflow.keras.layers import LSTM, BatchNormalization, Conv2D, Dense, Dropout, Input, MaxPooling2D
from tensorflow.keras.losses import SparseCategoricalCrossentropy
from tensorflow.keras.models import Model, Sequential
from tensorflow.keras.optimizers import SGD, Adam
from tensorflow.keras.optimizers.schedules import ExponentialDecay
from tensorflow.keras.regularizers import l2
from tensorflow.keras.utils import to_categorical

RESULT = {
    "same": [layers.Dense is Dense, keras.layers.Dense is Dense, keras.Model is Model, optimizers.Adam is Adam],
    "names": [Dense.__name__, Conv2D.__name__, EarlyStopping.__name__, l2(0.5).__class__.__name__],
    "made": to_categorical([1]),
}
