"""Operators of classical machine learning: ``ai.onnx.ml``, and TfIdfVectorizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hybridflow.array import elementwise as ew, reductions, shapes
from hybridflow.array.creation import asarray, zeros
from hybridflow.array.indexing import take
from hybridflow.array.linalg import matmul
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import DTypeLike
from hybridflow.nn import functional
from hybridflow.onnx.operators import ML, operator
from hybridflow.onnx.running import Call


def _constant(values: object, dtype: DTypeLike = np.float32) -> Tensor:
    return asarray(np.asarray(values, dtype))


def _float(x: Tensor) -> Tensor:
    return x if x.dtype == dtypes.float32 else ew.astype(x, dtypes.float32)


@operator("Scaler", domain=ML)
def scaler(call: Call, x: Tensor, *, offset: object = None, scale: object = None) -> Tensor:
    x = _float(x)
    if offset is not None:
        x = x - _constant(offset)
    return x if scale is None else x * _constant(scale)


@operator("Binarizer", domain=ML)
def binarizer(call: Call, x: Tensor, *, threshold: float = 0.0) -> Tensor:
    return ew.astype(ew.greater(x, threshold), x.dtype)


@operator("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(call: Call, x: Tensor, places: Tensor) -> Tensor:
    columns = take(x, shapes.reshape(places, (-1,)), axis=x.ndim - 1)
    return shapes.reshape(columns, (1, -1)) if x.ndim == 1 else columns


@operator("Normalizer", domain=ML)
def normalizer(call: Call, x: Tensor, *, norm: str = "MAX") -> Tensor:
    x = _float(x)
    if norm == "L1":
        size = reductions.sum(ew.abs(x), axis=-1, keepdims=True)
    elif norm == "L2":
        size = ew.sqrt(reductions.sum(x * x, axis=-1, keepdims=True))
    else:
        size = reductions.max(ew.abs(x), axis=-1, keepdims=True)
    return ew.divide(x, ew.where(ew.equal(size, 0.0), 1.0, size))


@operator("FeatureVectorizer", domain=ML)
def feature_vectorizer(call: Call, *tensors: Tensor, inputdimensions: object = None) -> Tensor:
    return shapes.concat([_float(x) for x in tensors], axis=1)


@operator("Imputer", domain=ML)
def imputer(
    call: Call,
    x: Tensor,
    *,
    imputed_value_floats: object = None,
    imputed_value_int64s: object = None,
    replaced_value_float: float = 0.0,
    replaced_value_int64: int = 0,
) -> Tensor:
    if imputed_value_floats is not None:
        missing = ew.isnan(x) if np.isnan(replaced_value_float) else ew.equal(x, replaced_value_float)
        return ew.where(missing, _constant(imputed_value_floats), x)
    return ew.where(ew.equal(x, replaced_value_int64), _constant(imputed_value_int64s, np.int64), x)


def _post(x: Tensor, how: str) -> Tensor:
    if how == "NONE":
        return x
    if how == "LOGISTIC":
        return ew.sigmoid(x)
    if how == "SOFTMAX":
        return functional.softmax(x, axis=-1)
    raise ValueError(f"post_transform {how!r} is not supported")


@operator("LinearRegressor", domain=ML)
def linear_regressor(
    call: Call,
    x: Tensor,
    *,
    coefficients: Sequence[float],
    intercepts: object = None,
    post_transform: str = "NONE",
    targets: int = 1,
) -> Tensor:
    result = matmul(_float(x), _constant(np.reshape(coefficients, (targets, -1)).T))
    return _post(result if intercepts is None else result + _constant(intercepts), post_transform)


@operator("LinearClassifier", domain=ML)
def linear_classifier(
    call: Call,
    x: Tensor,
    *,
    classlabels_ints: Sequence[int] | None = None,
    classlabels_strings: object = None,
    coefficients: Sequence[float],
    intercepts: Sequence[float] | None = None,
    multi_class: int = 0,
    post_transform: str = "NONE",
) -> tuple[Tensor, Tensor]:
    if classlabels_ints is None:
        raise call.fault("its labels are strings, which are not supported.")
    rows = len(intercepts) if intercepts is not None else len(classlabels_ints)
    scores = matmul(_float(x), _constant(np.reshape(coefficients, (rows, -1)).T))
    scores = scores if intercepts is None else scores + _constant(intercepts)
    return _classified(scores, classlabels_ints, post_transform)


def _classified(scores: Tensor, labels: Sequence[int], post_transform: str) -> tuple[Tensor, Tensor]:
    """The label of the largest score, and the scores; one score alone is of the second of two labels."""
    if scores.shape[-1] == 1 and len(labels) == 2:
        if post_transform == "LOGISTIC":
            second = ew.sigmoid(scores)
            scores = shapes.concat([1 - second, second], axis=-1)
            place = ew.astype(ew.greater(scores[:, 1], 0.5), dtypes.int64)
            return take(_constant(labels, np.int64), place, axis=0), scores
        scores = shapes.concat([-scores, scores], axis=-1)
    chosen = take(_constant(labels, np.int64), reductions.argmax(scores, axis=-1), axis=0)
    return chosen, _post(scores, post_transform)


# ---- trees: all of them walked at once, as many steps as the deepest has


_COMPARED = {
    "BRANCH_LEQ": ew.less_equal,
    "BRANCH_LT": ew.less,
    "BRANCH_GTE": ew.greater_equal,
    "BRANCH_GT": ew.greater,
    "BRANCH_EQ": ew.equal,
    "BRANCH_NEQ": ew.not_equal,
}
_BY_NUMBER = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")


class _Trees:
    """Trees as tables: for each node a feature, a value, what follows, and the weights of leaves by target."""

    def __init__(
        self,
        call: Call,
        modes: list[str],
        features: Sequence[int],
        values: Any,
        true: object,
        false: object,
        roots: Any,
        weights: np.ndarray,
        missing: Sequence[int] | None,
        dtype: DTypeLike,
    ) -> None:
        kinds = {mode for mode in modes if mode != "LEAF"}
        if not kinds <= set(_COMPARED):
            raise call.fault(f"its nodes compare by {sorted(kinds - set(_COMPARED))}, which is not supported.")
        self.kinds = sorted(kinds)
        self.modes = np.array([self.kinds.index(mode) if mode != "LEAF" else 0 for mode in modes], np.int64)
        self.features, self.values = np.asarray(features, np.int64), np.asarray(values, dtype)
        leaf = np.array([mode == "LEAF" for mode in modes])
        numbers = np.arange(len(modes))
        self.true = np.where(leaf, numbers, np.asarray(true, np.int64))
        self.false = np.where(leaf, numbers, np.asarray(false, np.int64))
        count = len(modes)
        if count and ((self.true < 0) | (self.true >= count) | (self.false < 0) | (self.false >= count)).any():
            raise call.fault("its nodes lead outside of the table.")
        self.roots, self.weights = np.asarray(roots, np.int64), weights
        self.missing = None if missing is None or not np.any(missing) else np.asarray(missing, np.bool_)
        self.depth = self._depth(call)

    def _depth(self, call: Call) -> int:
        """How many steps the longest way to a leaf has.  Raises where there is a circle."""
        numbers = np.arange(len(self.true))
        reached = np.zeros(len(self.true), np.bool_)
        reached[self.roots] = True
        for step in range(len(numbers) + 1):
            inner = numbers[reached & ((self.true != numbers) | (self.false != numbers))]
            if not len(inner):
                return step
            reached = np.zeros(len(numbers), np.bool_)
            reached[self.true[inner]] = reached[self.false[inner]] = True
        raise call.fault("its nodes form a circle.")

    def leaves(self, x: Tensor) -> Tensor:
        """For each row and tree the number of the leaf."""
        count = x.shape[0]
        at = shapes.broadcast_to(asarray(self.roots), (count, len(self.roots)))
        tables = [asarray(part) for part in (self.features, self.values, self.true, self.false, self.modes)]
        from hybridflow.array.indexing import take_along_axis

        for _ in range(self.depth):
            feature, value, true, false, mode = (take(table, at, axis=0) for table in tables)
            seen = take_along_axis(x, feature, axis=1)
            answer: Any = None
            for k, kind in enumerate(self.kinds):
                part = _COMPARED[kind](seen, value)
                answer = part if answer is None else ew.where(ew.equal(mode, k), part, answer)
            if self.missing is not None:
                answer = ew.logical_or(answer, ew.logical_and(take(asarray(self.missing), at, axis=0), ew.isnan(seen)))
            at = ew.where(answer, true, false)
        return at

    def scores(self, x: Tensor, how: str) -> Tensor:
        leaf_weights = take(asarray(self.weights), self.leaves(x), axis=0)  # [rows, trees, targets]
        if how == "MIN":
            return reductions.min(leaf_weights, axis=1)
        if how == "MAX":
            return reductions.max(leaf_weights, axis=1)
        total = reductions.sum(leaf_weights, axis=1, dtype=leaf_weights.dtype)
        return total / float(len(self.roots)) if how == "AVERAGE" else total


def _numbered(trees: Sequence[int], nodes: Sequence[int]) -> dict[tuple[int, int], int]:
    return {(int(t), int(n)): k for k, (t, n) in enumerate(zip(trees, nodes, strict=True))}


def _old_trees(call: Call, attributes: dict[str, Any], kind: str, targets: int) -> _Trees:
    """The tables of the older operators, whose nodes are named by tree and number."""
    tensors = attributes.get("nodes_values_as_tensor") is not None
    values = attributes["nodes_values_as_tensor"] if tensors else attributes.get("nodes_values")
    dtype = np.asarray(values).dtype if tensors else np.float32
    places = _numbered(attributes["nodes_treeids"], attributes["nodes_nodeids"])
    modes = attributes["nodes_modes"]

    def following(ids: Sequence[int]) -> list[int]:
        pairs = zip(attributes["nodes_treeids"], ids, modes, strict=True)
        return [0 if mode == "LEAF" else places[int(tree), int(node)] for tree, node, mode in pairs]

    roots: dict[int, int] = {}
    for k, tree in enumerate(attributes["nodes_treeids"]):
        roots.setdefault(int(tree), k)
    shares = attributes.get(f"{kind}_weights_as_tensor")
    shares = attributes[f"{kind}_weights"] if shares is None else shares
    weights = np.zeros((len(modes), targets), dtype)
    for tree, node, target, share in zip(
        attributes[f"{kind}_treeids"], attributes[f"{kind}_nodeids"], attributes[f"{kind}_ids"], shares, strict=True
    ):
        weights[places[int(tree), int(node)], int(target)] += share
    return _Trees(
        call,
        modes,
        attributes["nodes_featureids"],
        values,
        following(attributes["nodes_truenodeids"]),
        following(attributes["nodes_falsenodeids"]),
        list(roots.values()),
        weights,
        attributes.get("nodes_missing_value_tracks_true"),
        dtype,
    )


@operator("TreeEnsembleRegressor", domain=ML)
def tree_ensemble_regressor(
    call: Call,
    x: Tensor,
    *,
    aggregate_function: str = "SUM",
    base_values: object = None,
    base_values_as_tensor: object = None,
    n_targets: int = 1,
    nodes_falsenodeids: object = None,
    nodes_featureids: object = None,
    nodes_hitrates: object = None,
    nodes_hitrates_as_tensor: object = None,
    nodes_missing_value_tracks_true: object = None,
    nodes_modes: object = None,
    nodes_nodeids: object = None,
    nodes_treeids: object = None,
    nodes_truenodeids: object = None,
    nodes_values: object = None,
    nodes_values_as_tensor: object = None,
    post_transform: str = "NONE",
    target_ids: object = None,
    target_nodeids: object = None,
    target_treeids: object = None,
    target_weights: object = None,
    target_weights_as_tensor: object = None,
) -> Tensor:
    trees = _old_trees(call, call.node.attributes, "target", n_targets)
    result = ew.astype(trees.scores(x, aggregate_function), dtypes.float32)
    base = base_values if base_values is not None else base_values_as_tensor
    return _post(result if base is None else result + _constant(base), post_transform)


@operator("TreeEnsembleClassifier", domain=ML)
def tree_ensemble_classifier(
    call: Call,
    x: Tensor,
    *,
    base_values: Sequence[float] | None = None,
    base_values_as_tensor: np.ndarray | None = None,
    class_ids: Any = None,
    class_nodeids: object = None,
    class_treeids: object = None,
    class_weights: object = None,
    class_weights_as_tensor: object = None,
    classlabels_int64s: Sequence[int] | None = None,
    classlabels_strings: object = None,
    nodes_falsenodeids: object = None,
    nodes_featureids: object = None,
    nodes_hitrates: object = None,
    nodes_hitrates_as_tensor: object = None,
    nodes_missing_value_tracks_true: object = None,
    nodes_modes: object = None,
    nodes_nodeids: object = None,
    nodes_treeids: object = None,
    nodes_truenodeids: object = None,
    nodes_values: object = None,
    nodes_values_as_tensor: object = None,
    post_transform: str = "NONE",
) -> tuple[Tensor, Tensor]:
    if classlabels_int64s is None:
        raise call.fault("its labels are strings, which are not supported.")
    labels = list(classlabels_int64s)
    alone = len(labels) == 2 and len({int(k) for k in class_ids}) == 1  # the score of the second label alone
    trees = _old_trees(call, call.node.attributes, "class", len(labels))
    scores = ew.astype(trees.scores(x, "SUM"), dtypes.float32)
    base = base_values if base_values is not None else base_values_as_tensor
    if not alone:
        return _classified(scores if base is None else scores + _constant(base), labels, post_transform)
    score = scores[:, int(class_ids[0]) : int(class_ids[0]) + 1]
    score = score if base is None else score + _constant(np.reshape(base, -1)[-1:])
    if post_transform == "LOGISTIC":
        return _classified(score, labels, post_transform)
    both = shapes.concat([1 - score, score], axis=-1)
    chosen = take(_constant(labels, np.int64), ew.astype(ew.greater(score[:, 0], 0.5), dtypes.int64), axis=0)
    return chosen, _post(both, post_transform)


@operator("TreeEnsemble", domain=ML, since=5)
def tree_ensemble(
    call: Call,
    x: Tensor,
    *,
    aggregate_function: int = 1,
    leaf_targetids: object,
    leaf_weights: np.ndarray,
    membership_values: object = None,
    n_targets: int = 1,
    nodes_falseleafs: Sequence[int],
    nodes_falsenodeids: Any,
    nodes_featureids: Any,
    nodes_hitrates: object = None,
    nodes_missing_value_tracks_true: Any = None,
    nodes_modes: Sequence[Any],
    nodes_splits: np.ndarray,
    nodes_trueleafs: Sequence[int],
    nodes_truenodeids: Any,
    post_transform: int = 0,
    tree_roots: Sequence[int],
) -> Tensor:
    inner, leaves = len(nodes_modes), len(leaf_weights)
    modes = [_BY_NUMBER[int(mode)] for mode in nodes_modes] + ["LEAF"] * leaves
    dtype = np.asarray(nodes_splits).dtype
    weights = np.zeros((inner + leaves, n_targets), dtype)
    weights[inner + np.arange(leaves), np.asarray(leaf_targetids)] = leaf_weights

    def following(ids: Sequence[int], is_leaf: Sequence[int]) -> list[int]:
        return [int(k) + inner * bool(leaf) for k, leaf in zip(ids, is_leaf, strict=True)] + [0] * leaves

    ahead = [0] * leaves
    if membership_values is not None:
        return _with_sets(call, x, modes, weights, following, call.node.attributes)
    missing = nodes_missing_value_tracks_true
    trees = _Trees(
        call,
        modes,
        [*nodes_featureids, *ahead],
        [*nodes_splits, *ahead],
        following(nodes_truenodeids, nodes_trueleafs),
        following(nodes_falsenodeids, nodes_falseleafs),
        tree_roots,
        weights,
        None if missing is None else [*missing, *ahead],
        dtype,
    )
    how = ("AVERAGE", "SUM", "MIN", "MAX")[aggregate_function]
    post = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")[post_transform]
    return _post(trees.scores(x, how), post)


def _with_sets(
    call: Call,
    x: Tensor,
    modes: Any,
    weights: Any,
    following: Any,
    attributes: dict[str, Any],
) -> Tensor:
    """Nodes that ask whether a value is in a set become chains of nodes that compare with each of it."""
    members: list[list[float]] = [[]]
    for value in np.asarray(attributes["membership_values"]).reshape(-1):
        if np.isnan(value):
            members.append([])
        else:
            members[-1].append(float(value))
    true = following(attributes["nodes_truenodeids"], attributes["nodes_trueleafs"])
    false = following(attributes["nodes_falsenodeids"], attributes["nodes_falseleafs"])
    leaves = len(modes) - len(attributes["nodes_modes"])
    features = [*attributes["nodes_featureids"], *[0] * leaves]
    splits = [*attributes["nodes_splits"], *[0] * leaves]
    missing = attributes.get("nodes_missing_value_tracks_true")
    tracks = [*(missing if missing is not None else [0] * len(attributes["nodes_modes"])), *[0] * leaves]
    rows = [weights]
    # Sets come in the order in which the trees are walked, true branch first.
    order: list[int] = []
    waiting = [int(root) for root in reversed(attributes["tree_roots"])]
    seen: set[int] = set()
    while waiting:
        k = waiting.pop()
        if modes[k] == "LEAF" or k in seen:
            continue
        seen.add(k)
        order.append(k)
        waiting += [false[k], true[k]]
    sets = iter(members)
    for k in order:
        if modes[k] != "BRANCH_MEMBER":
            continue
        values = next(sets, [])
        if not values:
            raise call.fault("it has a node with an empty set.")
        modes[k], splits[k] = "BRANCH_EQ", values[0]
        last, otherwise = k, false[k]
        for value in values[1:]:
            modes.append("BRANCH_EQ")
            features.append(features[k])
            splits.append(value)
            tracks.append(tracks[k])
            true.append(true[k])
            false.append(otherwise)
            rows.append(np.zeros((1, weights.shape[1]), weights.dtype))
            false[last] = len(modes) - 1
            last = len(modes) - 1
    trees = _Trees(
        call, modes, features, splits, true, false, attributes["tree_roots"], np.concatenate(rows), tracks,
        np.asarray(attributes["nodes_splits"]).dtype,
    )  # fmt: skip
    how = ("AVERAGE", "SUM", "MIN", "MAX")[attributes.get("aggregate_function", 1)]
    post = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")[attributes.get("post_transform", 0)]
    return _post(trees.scores(x, how), post)


@operator("TfIdfVectorizer", since=9)
def tf_idf_vectorizer(
    call: Call,
    x: Tensor,
    *,
    max_gram_length: int,
    max_skip_count: int,
    min_gram_length: int,
    mode: str,
    ngram_counts: Sequence[Any],
    ngram_indexes: Sequence[Any],
    pool_int64s: Sequence[Any] | None = None,
    pool_strings: object = None,
    weights: Any = None,
) -> Tensor:
    """How often sequences of a pool occur in each row, with up to so many elements between theirs."""
    if pool_int64s is None:
        raise call.fault("its pool is of strings, which are not supported.")
    columns = max(ngram_indexes, default=-1) + 1
    call.check_size([columns])
    rows = shapes.reshape(x, (1, -1)) if x.ndim == 1 else x
    length = int(rows.shape[1])
    total: Any = zeros((rows.shape[0], columns))
    first = 0
    ends = [*ngram_counts[1:], len(pool_int64s)]
    for size, (start, end) in enumerate(zip(ngram_counts, ends), 1):
        grams = np.reshape(pool_int64s[start:end], (-1, size))
        places = np.asarray(ngram_indexes[first : first + len(grams)], np.int64)
        first += len(grams)
        if not min_gram_length <= size <= max_gram_length or not len(grams):
            continue
        spread = np.zeros((len(grams), columns), np.float32)
        spread[np.arange(len(grams)), places] = 1
        for skip in range(1, (max_skip_count if size > 1 else 0) + 2):
            count = length - skip * (size - 1)
            if count < 1:
                break
            same: Any = None
            for k in range(size):
                part = shapes.expand_dims(rows[:, k * skip : k * skip + count], axis=2)
                equal = ew.equal(part, asarray(np.ascontiguousarray(grams[:, k]).astype(rows.dtype)))
                same = equal if same is None else ew.logical_and(same, equal)
            counts = reductions.sum(ew.astype(same, dtypes.float32), axis=1)
            total = total + matmul(counts, asarray(spread))
    if mode == "IDF":
        total = ew.astype(ew.greater(total, 0.0), dtypes.float32)
    if mode in ("IDF", "TFIDF") and weights is not None:
        by_column = np.ones(columns, np.float32)
        by_column[np.asarray(ngram_indexes)] = weights
        total = total * asarray(by_column)
    return total[0] if x.ndim == 1 else total
