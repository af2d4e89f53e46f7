"""The optimizers as torch.optim.Optimizer."""
from __future__ import annotations

from typing import Any

import torch

import clebsch

from ..optimizer import COUNTS, FLAGS, NUMBERS
from ._ops import context_for

WORDS = ("rule", "muon", *COUNTS, *NUMBERS, *FLAGS)
THEIRS = {"betas": "beta1 and beta2", "eps": "epsilon", "maximize": "the loss with a minus"}
"""What PyTorch's optimizers call it, in a group, where it would change nothing here."""


class Optimizer(torch.optim.Optimizer):
    """clebsch.Optimizer for parameters of PyTorch: one launch for all of them.

    params: as of PyTorch's optimizers; a group may have its own rule and numbers.  numbers: those
    of a group of clebsch.Optimizer, such as weight_decay.  clip, max_norm, check_finite: of the
    gradients of all.  The first step fixes which parameters have gradients, and their places."""

    def __init__(self, params: Any, rule: str = "adamw", lr: float = 1e-3, clip: str = "none",
                 max_norm: float = 0, check_finite: bool = False, **numbers: Any) -> None:
        self._options = {"clip": clip, "max_norm": max_norm, "check_finite": check_finite}
        self._inner, self._loaded = None, None
        for word in numbers:
            if word not in WORDS:
                raise TypeError(f"Optimizer: there is no keyword {word!r}; there are "
                                f"{', '.join(WORDS)}")
        super().__init__(params, {"rule": rule, "lr": lr, **numbers})

    @staticmethod
    def _numbers(group):
        for word in THEIRS:
            if word in group:
                raise TypeError(f"Optimizer: a group has {word!r}; here that is {THEIRS[word]}")
        return {word: group[word] for word in WORDS if word in group}

    def _start(self):
        found = [(p, i) for i, group in enumerate(self.param_groups) for p in group["params"]
                 if p.grad is not None]
        if not found:
            raise ValueError("step: no parameter has a gradient")
        self._parameters, members = [p for p, _ in found], [i for _, i in found]
        self._gradients = [torch.zeros_like(p.grad, memory_format=torch.contiguous_format)
                           for p in self._parameters]
        self._places = [p.data_ptr() for p in self._parameters]
        self._context = context_for(self._parameters[0])
        self._sent = [self._numbers(group) for group in self.param_groups]
        self._inner = clebsch.Optimizer(
            [p.detach() for p in self._parameters], self._gradients, self._sent, members,
            device=self._context, **self._options)
        if self._loaded is not None:
            self._inner.load_state(self._loaded)
            self._loaded = None

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:  # type: ignore[override]
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if self._inner is None:
            self._start()
        if context_for(self._parameters[0]) is not self._context or self._places != [
                p.data_ptr() for p in self._parameters]:
            raise clebsch.Error("step: parameters have moved, or the current stream is another; "
                                "make the optimizer where the steps are")
        for i, group in enumerate(self.param_groups[:len(self._sent)]):
            numbers = self._numbers(group)
            if numbers != self._sent[i]:
                self._inner.set_group(i, numbers)
                self._sent[i] = numbers
        if sum(p.grad is not None for group in self.param_groups
               for p in group["params"]) > len(self._parameters):
            raise ValueError("step: a parameter that had no gradient in the first step has one")
        for p, gradient in zip(self._parameters, self._gradients):
            if p.grad is None:
                raise ValueError("step: a parameter that had a gradient in the first step has none")
            if p.grad is not gradient:
                gradient.copy_(p.grad)
                p.grad = gradient  # where zero_grad(set_to_none=False) leaves it
        self._inner.step()
        return loss

    def progress(self) -> clebsch.Progress:
        """Steps taken and left out, and the norm of the last gradients."""
        return self._inner.progress() if self._inner else clebsch.Progress(0, 0, 0.0)

    def state_dict(self) -> dict:
        found = super().state_dict()
        state = self._loaded if self._inner is None else self._inner.state()
        if state is not None:
            found["state"] = {"clebsch": torch.frombuffer(bytearray(state), dtype=torch.uint8)}
        return found

    def load_state_dict(self, state_dict: dict) -> None:
        if any("rule" not in group for group in state_dict["param_groups"]):
            raise ValueError("load_state_dict: this is the state of another class of optimizer")
        held = state_dict["state"].get("clebsch")
        super().load_state_dict({**state_dict, "state": {}})
        self._loaded = None if held is None else held.cpu().numpy().tobytes()
        if held is None:  # of before the first step, which comes again
            self._inner = None
        elif self._inner is not None:
            self._inner.load_state(self._loaded)
            self._loaded = None
