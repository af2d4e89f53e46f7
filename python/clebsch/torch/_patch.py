"""Models of MACE, SevenNet and NequIP, made of their own packages, with ops of Clebsch in them."""
from __future__ import annotations

import functools
from typing import List

import torch

import clebsch

from . import _functions
from ._modules import (Convolution, Gate, Linear, Module, SphericalHarmonics, TensorProduct,
                       known_activation, terms)
from ._ops import described


_compiles = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)


class _Fused(Convolution):
    """Weights that a network can give again are not kept for derivatives: no arrays of edges are
    longer."""

    def forward(self, x, y, weight, senders, receivers):  # type: ignore[override]
        again = getattr(weight, "again", None)
        if again is None:
            return super().forward(x, y, weight, senders, receivers)
        at = weight.data_ptr()
        with torch.autograd.graph.saved_tensors_hooks(
                lambda kept: again if kept.data_ptr() == at else kept,
                lambda kept: kept() if kept is again else kept):
            return super().forward(x, y, weight, senders, receivers)


class _OfIndex(_Fused):
    """With the edges of MACE."""

    def forward(self, x, y, weight, edge_index):  # type: ignore[override]
        return super().forward(x, y, weight, edge_index[0], edge_index[1])


class _OfNequip(Convolution):
    """With the arguments of NequIP's TensorProductScatter, whose product it keeps for its state."""

    def forward(self, x, edge_attr, edge_weight, edge_dst, edge_src):  # type: ignore[override]
        return super().forward(x, edge_attr, edge_weight, edge_src, edge_dst)


class _Sevennet(torch.nn.Module):
    """An IrrepsConvolution of SevenNet, of whose edges no copies are made.  Operands of a
    convolution are shorter than its results, and so they are what is divided."""

    def forward(self, data):
        receivers, senders = data[self.key_edge_idx].unbind()
        data[self.key_x] = self.convolution(
            data[self.key_x] / self.denominator, data[self.key_filter],
            self.weight_nn(data[self.key_weight_input]), senders, receivers)
        return data


def _product(kind, old):
    """A module of this kind for a product of e3nn, with its weights, the same tensors."""
    steps = [(one.i_in1, one.i_in2, one.i_out, one.connection_mode, one.has_weight,
              float(one.path_weight) ** 2) for one in old.instructions]
    new = kind(old.irreps_in1, old.irreps_in2, old.irreps_out, steps, irrep_normalization="none",
               path_normalization="none", internal_weights=old.internal_weights,
               shared_weights=old.shared_weights)
    new.instructions, new.weight, new.output_mask = old.instructions, old.weight, old.output_mask
    x, y, w = (_random(old.output_mask, 3, new.columns[operand]) for operand in "xyw")
    w = () if old.internal_weights else (w[0] if old.shared_weights else w,)
    edges = torch.arange(3, device=x.device)
    more = {_OfIndex: (torch.stack([edges, edges]),)}.get(kind, (edges, edges))
    _agree(old, new, (x, y, *w), (x, y, *(w or (None,)), *more) if issubclass(kind, Convolution)
           else (x, y, *w))
    return new


def _random(like, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1)).to(like)


def _agree(old, new, operands, others=None):
    """They give the same for random numbers."""
    with torch.no_grad():
        a, b = old(*operands), new(*(others or operands))
    tolerance = 1e-10 if a.dtype == torch.float64 else 1e-3
    if a.shape != b.shape or not ((a - b).abs().max() <= tolerance * a.abs().max().clamp(min=1)):
        raise clebsch.Error(f"patch: {type(old).__name__} and what would replace it differ: {old}")


def _replace_product(old, model):
    return _product(TensorProduct, old)


class _BySpecies(Module):
    """A fully connected product with one-hot scalars: a linear map of each species."""

    def __init__(self, old):
        super().__init__()
        first, last = terms(old.irreps_in1), terms(old.irreps_out)
        self.instructions, self.weight = old.instructions, old.weight
        self.register_buffer("output_mask", old.output_mask)
        self.n_species = terms(old.irreps_in2)[0][0]
        places, factors, at, n = [], [], 0, self.n_species
        for one in old.instructions:
            (rows, degree, _), columns = first[one.i_in1], last[one.i_out][0]
            where = torch.arange(at, at + n * rows * columns).view(rows, n, columns)
            places.append(where.transpose(0, 1).reshape(n, -1))
            at += where.numel()
            factor = float(one.path_weight) / (2 * degree + 1) ** 0.5
            factors.append(old.weight.new_full((rows * columns,), factor).detach())
        self.register_buffer("_places", torch.cat(places, 1).flatten().to(old.weight.device),
                             persistent=False)
        self.register_buffer("_factors", torch.cat(factors), persistent=False)
        self.function = _functions.linear(
            old.irreps_in1, old.irreps_out, [(i.i_in1, i.i_out) for i in old.instructions],
            n_species=n, path_normalization="none")

    def forward(self, x, y):
        w = self.weight.index_select(0, self._places).view(self.n_species, -1) * self._factors
        return self.function(x, w, y.argmax(-1))


def _by_species(module, name):
    """For a product whose second operand a package makes one-hot."""
    old = getattr(module, name, None)
    if not _is_product(old) or not old.internal_weights or not old.instructions or any(
            one.connection_mode != "uvw" for one in old.instructions):
        return None
    second = terms(old.irreps_in2)
    if len(second) != 1 or second[0][1:] != (0, 1):
        return None
    new = _BySpecies(old)
    y = torch.eye(second[0][0])[torch.arange(3) % second[0][0]]
    _agree(old, new, (_random(old.output_mask, 3, new.function.columns["x"]),
                      y.to(old.output_mask)))
    setattr(module, name, new.train(old.training))
    return type(old).__name__


def _replace_harmonics(old, model):
    new = SphericalHarmonics(str(old.irreps_out), old.normalize, old.normalization,
                             str(old.irreps_in))
    new.irreps_in, new.irreps_out = old.irreps_in, old.irreps_out
    _agree(old, new, (_random(next(model.parameters()), 3, 3),))
    return new


class _Contraction(torch.nn.Module):
    """MACE's, with its weights and their names: they are projected onto the paths of the op."""

    def __init__(self, old, ell, correlation, degrees):
        super().__init__()
        self.contractions, self.irreps_out = old.contractions, old.irreps_out
        first = old.contractions[0]
        self.channels, self.correlation, self.degrees = first.num_features, correlation, degrees
        self.function = _functions.symmetric_contraction(
            ell, correlation, degrees, self.channels, layout="by_channel",
            n_species=first.weights_max.shape[0])
        op, onto = described(self.function.text).op, []
        for one, degree in zip(old.contractions, degrees):
            for nu in range(1, correlation + 1):
                theirs = one.U_tensors(nu)
                ours = [torch.from_numpy(op.basis(degree, nu, path)).flatten()
                        for path in op.paths(degree, nu)]
                flat = theirs.reshape(-1, theirs.shape[-1])
                ours = torch.stack(ours) if ours else torch.zeros(0, flat.shape[0])
                onto.append(ours.to(flat) @ flat)
        self.register_buffer("_onto", torch.block_diag(*onto), persistent=False)

    def _weight(self):
        places = [self.correlation - 1 - nu for nu in range(1, self.correlation + 1)]
        parts = [one.weights_max if place < 0 else one.weights[place]
                 for one in self.contractions for place in places]
        return (self._onto @ torch.cat(parts, 1)).flatten(1)

    def forward(self, x, y):
        z = self.function(x.flatten(1), self._weight(), y.argmax(-1))
        if len(self.degrees) == 1:
            return z
        parts = z.reshape(z.shape[0], self.channels, -1).split([2 * n + 1 for n in self.degrees], 2)
        return torch.cat([one.flatten(1) for one in parts], 1)


def _replace_contraction(old, model):
    first = old.contractions[0]
    coupled, found = terms(first.coupling_irreps), terms(old.irreps_out)
    degrees = [degree for _, degree, _ in found]
    natural = all(parity == (-1) ** degree for _, degree, parity in coupled + found)
    if not natural or [term[1] for term in coupled] != list(range(len(coupled))) or len(
            {one.correlation for one in old.contractions}) > 1 or len(coupled) > 5 or (
            max(degrees) > 4 or len(set(degrees)) != len(degrees) or first.correlation > 4):
        return None
    new = _Contraction(old, len(coupled) - 1, first.correlation, degrees)
    n_species = first.weights_max.shape[0]
    x = _random(first.weights_max, 3, first.num_features, len(coupled) ** 2)
    _agree(old, new, (x, torch.eye(n_species).to(x)[torch.arange(3) % n_species]))
    return new


def _replace_linear(old, model):
    given = [(one.i_in, one.i_out, one.path_weight) for one in old.instructions if one.i_in >= 0]
    biased = {one.i_out for one in old.instructions if one.i_in < 0}
    first, last = terms(old.irreps_in), terms(old.irreps_out)
    if old.weight.dim() > 1 or not old.internal_weights or not given:
        return None
    by_element = all(abs(sum(first[i][0] for i, other, _ in given if other == out) * weight ** 2
                         - 1) < 1e-9 for _, out, weight in given)
    new = Linear(old.irreps_in, old.irreps_out, instructions=[pair[:2] for pair in given],
                 biases=[i in biased for i in range(len(last))],
                 path_normalization="element" if by_element else "path")
    new.weight, new.bias, new.output_mask = old.weight, old.bias, old.output_mask
    _agree(old, new, (_random(old.output_mask, 3, new.columns["x"]),))
    return new


def _word(activation):
    """What a gate calls an activation, with its factor; None: it has no such."""
    found = (1.0, "identity") if activation is None else known_activation(activation)
    return found and f"{found[0]!r}*{found[1]}"


def _gate(old, model, *arguments):
    """Lists of activations are of e3nn's Activation."""
    words = [[_word(act) for act in one.acts] if hasattr(one, "acts") else one for one in arguments]
    if any(None in one for one in words if isinstance(one, list)):
        return None
    new = Gate(*words, irreps_x=str(old.irreps_in))
    new.irreps_in, new.irreps_out = old.irreps_in, old.irreps_out
    _agree(old, new, (_random(next(model.parameters()), 3, new.function.columns["x"]),))
    return new


def _replace_gate(old, model):
    return _gate(old, model, old.act_scalars.irreps_in, old.act_scalars, old.act_gates.irreps_in,
                 old.act_gates, old.irreps_gated)


def _replace_activation(old, model):
    if any(term[1] for term in terms(old.irreps_in)):
        return None
    return _gate(old, model, old.irreps_in, old)


class _Reshape(torch.nn.Module):
    """MACE's, to [n][channel][component], whose derivative is not a sum of as many arrays."""

    def __init__(self, old):
        super().__init__()
        self.irreps, self.muls, self.dims = old.irreps, old.muls, old.dims
        self.sizes = [mul * dim for mul, dim in zip(old.muls, old.dims)]

    def forward(self, x):
        parts = zip(x.split(self.sizes, 1), self.muls, self.dims)
        return torch.cat([one.reshape(len(x), mul, dim) for one, mul, dim in parts], -1)


def _replace_reshape(old, model):
    return None if getattr(old, "cueq_config", None) else _Reshape(old)


class _Layer(torch.nn.Module):
    """Of e3nn's FullyConnectedNet; its factors are of the weights and the activation."""

    def __init__(self, old, word):
        super().__init__()
        self.weight, self.word = old.weight, word
        self.factor = float(old.h_in * old.var_in) ** -0.5
        if word:
            self.act = _functions.gate(f"{old.weight.shape[1]}x0e", word, normalize=False)
        else:
            self.factor *= float(old.var_out) ** 0.5

    def scaled(self):
        return self.weight * self.factor

    def forward(self, x):
        x = x @ self.scaled()
        return self.act(x) if self.word else x


def _again(x, weight):
    with torch.no_grad():
        return x @ weight


class _Network(torch.nn.Sequential):
    """e3nn's FullyConnectedNet, of rows.  In evaluations the last matrix product may be made again:
    what it takes is shorter than what it gives."""

    def forward(self, x):
        *first, last = self
        z = x.reshape(-1, x.shape[-1])
        for one in first:
            z = one(z)
        before, z = z, last(z)
        z = z.reshape(*x.shape[:-1], z.shape[-1])
        if z.requires_grad and not (self.training or last.word or _compiles()):
            z.again = functools.partial(_again, before.detach(), last.scaled().detach())
        return z


def _replace_network(old, model):
    layers = dict(old.named_children())
    words = [one.act and _word(lambda x, one=one: one.act(x) * one.var_out ** 0.5)
             for one in layers.values()]
    if any(one.act and not word for one, word in zip(layers.values(), words)):
        return None
    new = _Network()
    new.hs = old.hs
    for (name, one), word in zip(layers.items(), words):
        new.add_module(name, _Layer(one, word))
    first = next(iter(new))
    _agree(old, new, (_random(first.weight, 3, first.weight.shape[0]),))
    return new


def _is_product(module):
    """Of e3nn, not of another library that takes its place."""
    return _rule({PRODUCT: True}, module)


def _fuse_mace(block, model):
    """Its blocks call a convolution where they are told so."""
    told = "conv_fusion" in type(block).forward.__code__.co_consts
    if told and not hasattr(block, "conv_fusion") and _is_product(block.conv_tp):
        block.conv_tp = _product(_OfIndex, block.conv_tp)
        block.conv_fusion = True
        return "conv_tp"
    return None


def _fuse_sevennet(block, model):
    if block.is_parallel or not _is_product(block.convolution):
        return None
    block.convolution = _product(_Fused, block.convolution)
    block.__class__ = _Sevennet
    return "convolution"


def _replace_nequip(old, model):
    if not _is_product(old.tp) or type(old).__name__ != "TensorProductScatter":
        return None
    new = _product(_OfNequip, old.tp)
    del new.weight, new.output_mask
    new.tp = old.tp
    return new


PRODUCT = ("e3nn", "TensorProduct")
FUSED = {("mace", "InteractionBlock"): _fuse_mace, ("sevenn", "IrrepsConvolution"): _fuse_sevennet}
ONE_HOT = {("mace", "InteractionBlock"): "skip_tp",
           ("sevenn", "SelfConnectionIntro"): "fc_tensor_product"}
REPLACED = {PRODUCT: _replace_product, ("e3nn", "SphericalHarmonics"): _replace_harmonics,
            ("e3nn", "Linear"): _replace_linear, ("e3nn", "Gate"): _replace_gate,
            ("e3nn", "Activation"): _replace_activation,
            ("e3nn", "FullyConnectedNet"): _replace_network,
            ("mace", "SymmetricContraction"): _replace_contraction,
            ("mace", "reshape_irreps"): _replace_reshape,
            ("nequip", "TensorProductScatter"): _replace_nequip}


_NAMES = {_OfNequip: "Convolution", _Contraction: "SymmetricContraction", _Network: "Gate",
          _Reshape: "cat"}


def _rule(rules, module):
    kinds = ((kind.__module__.partition(".")[0], kind.__name__) for kind in type(module).__mro__)
    return next((rules[kind] for kind in kinds if kind in rules), None)


def patch(model: torch.nn.Module) -> List[str]:
    """Replaces, in their places, the convolutions, tensor products, symmetric contractions,
    spherical harmonics, linear maps, gates and networks of scalars of a model of MACE, SevenNet or
    NequIP, and says what it replaced by what.

    Parameters stay the same tensors with the same names; each part is compared with what it
    replaces on random numbers.  What is not known stays as it is."""
    done: List[str] = []
    _visit(model, model, "", done)
    for one in [one for one in model.modules() if isinstance(one, Convolution)][1:]:
        one.known = True
    if not done:
        raise ValueError("patch: the model has no convolution, tensor product, symmetric "
                         "contraction or spherical harmonics of MACE, SevenNet, NequIP or e3nn")
    return done


def _visit(module, model, path, done):
    fuse, kind = _rule(FUSED, module), type(module).__name__
    part = fuse(module, model) if fuse else None
    if part:
        done.append(f"{path}{part}: Convolution for the product and sum of {kind}")
    name = _rule(ONE_HOT, module)
    was = name and _by_species(module, name)
    if was:
        done.append(f"{path}{name}: Linear of each species for {was}")
    for name, child in list(module.named_children()):
        if isinstance(child, (Module, _Contraction)):
            continue
        replace = _rule(REPLACED, child)
        new = replace(child, model) if replace else None
        if new is not None:
            module._modules[name] = new.train(child.training)
            kind = _NAMES.get(type(new), type(new).__name__)
            done.append(f"{path}{name}: {kind} for {type(child).__name__}")
        elif not type(child).__module__.startswith("e3nn."):
            _visit(child, model, f"{path}{name}.", done)
