"""The recurrent network of `chakra synth`: learned with PyTorch, drawn from without it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from workloads_to_learn import trained

from chakra_et.synth import Fitted, Sampler, fit, load_model, neural, save_model
from chakra_et.validators import Severity, validate

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@pytest.fixture(scope="module", autouse=True)
def short() -> Iterator[None]:
    """Few steps are enough for a small workload."""
    with mock.patch.multiple(neural, _LEAST_STEPS=60, _MOST_STEPS=60):
        yield


@pytest.fixture(scope="module")
def learned(short: None) -> Fitted:
    return fit([trained()], learner="neural", seed=3)


def test_it_foresees_held_out_ranks_better_than_frequencies(learned: Fitted) -> None:
    told = learned.model.parts[0].evidence
    assert told.neural is not None
    assert told.neural < told.nothing / 2


def test_its_samples_are_valid_and_the_same_each_time(learned: Fitted, tmp_path: Path) -> None:
    save_model(learned.model, tmp_path / "model.json.gz")
    model = load_model(tmp_path / "model.json.gz")
    sample = Sampler(model, 4, 2, seed=1).traces()
    again = Sampler(model, 4, 2, seed=1).traces()
    assert all(sample[rank] == again[rank] for rank in sample)
    found = validate(sample, "astra-sim")
    assert not [o.rule.id for o in found.outcomes if o.severity >= Severity.WARNING]


def test_equal_seeds_learn_equal_weights(learned: Fitted) -> None:
    again = fit([trained()], learner="neural", seed=3)
    assert again.model == learned.model


def test_drawing_computes_what_pytorch_computes() -> None:
    """One symbol after the other in NumPy gives the states of PyTorch's own units."""
    from chakra_et.synth.network import Alphabet, Drawer, packed

    torch.manual_seed(1)
    alphabet = Alphabet(5, 3, 1)
    net = neural._network(torch, alphabet)
    weights = neural._arrays(net)
    drawer = Drawer(packed(weights, neural._WIDTH, neural._NARROW), alphabet, [1, 1, 1])
    symbols = np.array([3, 1, 4, 1, 5], np.int64)
    state = np.zeros((1, neural._WIDTH), np.float32)
    for symbol in symbols:
        state = drawer._next(state, np.array([symbol]))
    with torch.no_grad():
        wanted = net["units"](net["embedding"](torch.from_numpy(symbols)[None]))[0][0, -1]
    # The file has 16 bits for each weight.
    assert np.abs(state[0] - wanted.numpy()).max() < 1e-2
