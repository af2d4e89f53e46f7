"""lists.py - the shapes of the parameters of six models, by name: what a step of an optimizer is
timed on."""
import math

NEQUIX = """
    89 8x64 64x64 64x356 89x89 89x256 89x64 89x32*2 89x256 256 64 32*2 8x64 64x64 64x1312
    128x128 64x64 32x32*2 256x256 352x64 384x32 320x32 128x256 64x64 32x32*2 256 64 32*2 8x64
    64x64 64x1312 128x128 64x64 32x32*2 256x256 352x64 384x32 320x32 128x256 64x64 32x32*2 256
    64 32*2 8x64 64x64 64x256 128x128 64x64 32x32*2 256x128 128x128 128 128x1"""
GHOSTNET = """
    16x3x3x3 16*2 8x16x1x1 8*2 8x1x3x3 8*2 8x16x1x1 8*2 8x1x3x3 8*2 24x16x1x1 24*2 24x1x3x3 24*2
    48x1x3x3 48*2 12x48x1x1 12*2 12x1x3x3 12*2 16x1x3x3 16*2 24x16x1x1 24*2 36x24x1x1 36*2
    36x1x3x3 36*2 12x72x1x1 12*2 12x1x3x3 12*2 36x24x1x1 36*2 36x1x3x3 36*2 72x1x5x5 72*2
    20x72x1x1 20 72x20x1x1 72 20x72x1x1 20*2 20x1x3x3 20*2 24x1x5x5 24*2 40x24x1x1 40*2
    60x40x1x1 60*2 60x1x3x3 60*2 32x120x1x1 32 120x32x1x1 120 20x120x1x1 20*2 20x1x3x3 20*2
    120x40x1x1 120*2 120x1x3x3 120*2 240x1x3x3 240*2 40x240x1x1 40*2 40x1x3x3 40*2 40x1x3x3 40*2
    80x40x1x1 80*2 100x80x1x1 100*2 100x1x3x3 100*2 40x200x1x1 40*2 40x1x3x3 40*2 92x80x1x1 92*2
    92x1x3x3 92*2 40x184x1x1 40*2 40x1x3x3 40*2 92x80x1x1 92*2 92x1x3x3 92*2 40x184x1x1 40*2
    40x1x3x3 40*2 240x80x1x1 240*2 240x1x3x3 240*2 120x480x1x1 120 480x120x1x1 480 56x480x1x1
    56*2 56x1x3x3 56*2 80x1x3x3 80*2 112x80x1x1 112*2 336x112x1x1 336*2 336x1x3x3 336*2
    168x672x1x1 168 672x168x1x1 672 56x672x1x1 56*2 56x1x3x3 56*2 336x112x1x1 336*2 336x1x3x3
    336*2 672x1x5x5 672*2 168x672x1x1 168 672x168x1x1 672 80x672x1x1 80*2 80x1x3x3 80*2
    112x1x5x5 112*2 160x112x1x1 160*2 480x160x1x1 480*2 480x1x3x3 480*2 80x960x1x1 80*2 80x1x3x3
    80*2 480x160x1x1 480*2 480x1x3x3 480*2 240x960x1x1 240 960x240x1x1 960 80x960x1x1 80*2
    80x1x3x3 80*2 480x160x1x1 480*2 480x1x3x3 480*2 80x960x1x1 80*2 80x1x3x3 80*2 480x160x1x1
    480*2 480x1x3x3 480*2 240x960x1x1 240 960x240x1x1 960 80x960x1x1 80*2 80x1x3x3 80*2
    960x160x1x1 960*2 1280x960x1x1 1280 1000x1280 1000"""
DCGAN = "64x3x4x4 128x64x4x4 128*2 256x128x4x4 256*2 512x256x4x4 512*2 1x512x4x4"

# Made: the sizes of 128 channels and 89 species.
MACE = """
    89x2944*6 89x512*6 89x128*6 128x128*40 64x64*8 8x64*2 64x1280*4 128*60 1*16 11392x128
    3479x128"""


def transformer(embeddings, layers, width, last):
    """Attention and two linears of four times the width, with biases and norms."""
    layer = [(width, width), (width,)] * 4 + [(width,)] * 2
    layer += [(4 * width, width), (4 * width,), (width, 4 * width), (width,)] + [(width,)] * 2
    return embeddings + layer * layers + last


def shapes(text):
    found = []
    for word in text.split():
        shape, _, times = word.partition("*")
        found += [tuple(map(int, shape.split("x")))] * int(times or 1)
    return found


LISTS = {
    "nequix": shapes(NEQUIX),  # nequix-mp-1
    "mace": shapes(MACE),  # made: as many tensors and numbers as MACE-MP's medium model, about
    "dcgan": shapes(DCGAN),  # the discriminator
    "ghostnet": shapes(GHOSTNET),  # ghostnet_100 of timm
    "bert": transformer([(30522, 768), (512, 768), (2, 768), (768,), (768,)], 12, 768,
                        [(768, 768), (768,)]),  # BERT-base
    "xglm": transformer([(256008, 1024)], 24, 1024, [(1024,), (1024,)]),  # XGLM-564M
}


def numbers(name):
    return sum(math.prod(shape) for shape in LISTS[name])
