"""The benchmarks measure what they say: metrics, loaders, and both programs end to end on made-up data."""

from __future__ import annotations

import gzip
import json
import math
import os
import sys
from pathlib import Path

import psycopg
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "peers"))

import _metrics
import _scale_loading
import _sets
import driver
import latency
import recall
import run as peers
import scale
import serve
from _dataset import item_of, limited
from _environments import REQUIREMENTS
from _sample import sample
from _scale_data import Histories, MadeUp, small_users
from _texts import Synthetic, messages_of, turns
from postgres_server import server

from threefold.backends.postgres.opening import split_partitions

HASHED = "threefold.testing.fakes:HashEmbedder"


def write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(value, ensure_ascii=False)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, "utf-8")


def write_lines(path: Path, values: list[object]) -> None:
    text = "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, "utf-8")


class TestMetrics:
    def test_two_golds_at_ranks_2_and_7_and_one_never_found(self):
        ranked = ["x1", "a", "x2", "x3", "x4", "x5", "b", "x6"]
        values = _metrics.measure(ranked, {"a", "b", "c"})
        assert values["any@1"] == 0.0
        assert values["any@5"] == values["any@10"] == 1.0
        assert values["all@10"] == 0.0
        assert values["rec@1"] == 0.0
        assert values["rec@5"] == pytest.approx(1 / 3)
        assert values["rec@10"] == pytest.approx(2 / 3)
        assert values["mrr"] == 1 / 2
        ideal = 1 + 1 / math.log2(3) + 1 / 2
        assert values["ndcg@10"] == pytest.approx((1 / math.log2(3) + 1 / 3) / ideal)

    def test_all_counts_every_gold(self):
        values = _metrics.measure(["a", "x", "b"], ["a", "b"])
        assert (values["all@1"], values["all@5"]) == (0.0, 1.0)
        assert (values["rec@1"], values["any@1"]) == (0.5, 1.0)

    def test_the_ideal_is_capped_at_ten(self):
        gold = [str(i) for i in range(12)]
        values = _metrics.measure(gold, gold)
        assert values["ndcg@10"] == pytest.approx(1.0)
        assert values["rec@10"] == pytest.approx(10 / 12)

    def test_nothing_found_is_zero_everywhere(self):
        assert set(_metrics.measure([], ["a"]).values()) == {0.0}

    def test_no_gold_is_refused(self):
        with pytest.raises(ValueError, match="gold"):
            _metrics.measure(["a"], [])

    def test_mean_percentile_and_distinct(self):
        assert _metrics.mean([{"mrr": 1.0}, {"mrr": 0.0}, {"mrr": 0.0}]) == {"mrr": 0.3333}
        assert _metrics.percentile([3, 1, 2], 0.5) == 2
        assert _metrics.percentile([0, 10], 0.95) == pytest.approx(9.5)
        assert _metrics.percentile([5], 0.95) == 5
        assert _metrics.distinct(["b", "a", "b"]) == ["b", "a"]


def locomo_folder(folder: Path) -> Path:
    chat = {
        "speaker_a": "Ada",
        "speaker_b": "Ben",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ada", "dia_id": "D1:1", "text": "I adopted a greyhound called Comet."},
            {"speaker": "Ben", "dia_id": "D1:2", "text": "Lovely! Does it like the beach?"},
        ],
        "session_2_date_time": "10:05 am on 2 June, 2023",
        "session_2": [
            {"speaker": "Ben", "dia_id": "D2:1", "text": "My pottery class starts on Monday.", "query": "clay wheel"},
            {"speaker": "Ada", "dia_id": "D2:2", "text": "Then bring a vase to the beach party."},
        ],
        "session_3_date_time": "10:05 am on 9 June, 2023",
    }
    write(folder / "conversations.json", [{"sample_id": "conv-1", "conversation": chat}])
    asked = [
        (4, "What is the greyhound called?", ["D1:1"], False),
        (1, "Which classes and animals came up?", ["D1:1", "D2:1"], False),
        (2, "When does the pottery class start?", ["D2:1"], True),
        (5, "What is the cat called?", ["D1:1"], False),
        (3, "Would Ben like clay?", [], False),
    ]
    write_lines(
        folder / "questions.jsonl",
        [
            {"sample_id": "conv-1", "category": c, "question": q, "evidence": e, "gold_is_wrong": wrong}
            for c, q, e, wrong in asked
        ],
    )
    return folder


def longmemeval_folder(folder: Path) -> Path:
    sessions = {
        "s1": [("user", "I moved to Lisbon."), ("assistant", "How is it?"), ("user", "Sunny."), ("assistant", "Good.")],
        "s2": [("assistant", "Welcome back."), ("user", "My sneakers are under the bed."), ("assistant", "")],
        "s3": [("user", "Play chess?"), ("user", "Or go?"), ("assistant", "Go.")],
    }
    write_lines(
        folder / "sessions.jsonl.gz",
        [{"id": i, "turns": [{"role": r, "content": c} for r, c in said]} for i, said in sessions.items()],
    )
    haystack = [["s2", "2023/07/19 (Wed) 22:32"], ["s1", "2023/07/17 (Mon) 23:24"], ["s2", "2023/08/01 (Tue) 00:05"]]
    common = {"question_type": "knowledge-update", "haystack": haystack, "has_answer_turns": {"s2": [1, 2]}}
    write_lines(
        folder / "questions.jsonl",
        [
            {"question_id": "q1", "abstention": False, "question": "Where are my sneakers?", **common}
            | {"answer_session_ids": ["s2"]},
            {"question_id": "q2_abs", "abstention": True, "question": "Where is my hat?", **common}
            | {"answer_session_ids": ["s2"]},
        ],
    )
    return folder


class TestLoaders:
    def test_locomo(self, tmp_path):
        dataset = _sets.load("locomo", locomo_folder(tmp_path))
        entries = list(dataset.histories["conv-1"]())
        assert [(e.item, e.session, e.turn.id) for e in entries] == [
            ("D1:1", "session_1", "00000"),
            ("D1:2", "session_1", "00001"),
            ("D2:1", "session_2", "00000"),
            ("D2:2", "session_2", "00001"),
        ]
        assert entries[0].turn.submissions[0].author == "Ada"
        assert entries[1].turn.completion.author == "Ben"
        assert entries[1].turn.submissions == ()
        assert entries[2].turn.started.isoformat() == "2023-06-02T10:05:00+00:00"
        assert not any("clay" in text for e in entries for text in messages_of(e.turn))
        assert [(q.groups, q.gold["message"], q.gold["session"]) for q in dataset.questions] == [
            (("all", "single-hop"), {"D1:1:user"}, {"session_1"}),
            (("all", "multi-hop"), {"D1:1:user", "D2:1:assistant"}, {"session_1", "session_2"}),
        ]

    def test_longmemeval(self, tmp_path):
        dataset = _sets.load("longmemeval", longmemeval_folder(tmp_path))
        assert list(dataset.histories) == ["q1"]
        entries = list(dataset.histories["q1"]())
        assert [(e.turn.conversation, e.turn.id, e.item, e.session) for e in entries] == [
            ("s2", "00000", "s2/0", "s2"),
            ("s2", "00001", "s2/1", "s2"),
            ("s1", "00000", "s1/0", "s1"),
            ("s1", "00001", "s1/1", "s1"),
            ("s2#2", "00000", "s2/0", "s2"),
            ("s2#2", "00001", "s2/1", "s2"),
        ]
        assert entries[4].turn.started.isoformat() == "2023-08-01T00:05:00+00:00"
        assert messages_of(entries[3].turn) == ["Sunny.", "Good."]
        (question,) = dataset.questions
        assert question.gold == {"session": {"s2"}, "turn": {"s2/1"}, "message": {"s2/1:user", "s2/1:assistant"}}
        assert item_of("message", entries[1], "user") == "s2/1:user"

    def test_a_round_is_a_user_message_and_the_answer_to_it(self):
        roles = ["assistant", "user", "user", "assistant", "assistant"]
        assert _sets.rounds([{"role": role} for role in roles]) == [[0], [1], [2, 3], [4]]

    def test_longmemeval_pool(self, tmp_path):
        dataset = _sets.load("longmemeval-pool", longmemeval_folder(tmp_path))
        assert dataset.facts == {"pool": 3}
        entries = list(dataset.histories["pool"]())
        assert [e.turn.conversation for e in entries] == ["s1", "s1", "s2", "s2", "s3", "s3"]
        assert entries[2].turn.started.isoformat() == "2023-07-19T22:32:00+00:00"
        assert [(q.user, q.gold["session"]) for q in dataset.questions] == [("pool", {"s2"})]

    def test_xquad(self, tmp_path):
        write_lines(tmp_path / "documents.jsonl", [{"lang": "el", "id": "el-0", "text": "Η Αθήνα"}])
        write_lines(tmp_path / "queries.jsonl", [{"lang": "el", "text": "Αθήνα;", "gold": "el-0"}])
        write_lines(
            tmp_path / "variants.jsonl",
            [{"lang": "el", "text": "Αθηνα;", "gold": "el-0", "variant": "tonos_dropped"}],
        )
        dataset = _sets.load("xquad", tmp_path)
        assert [q.groups for q in dataset.questions] == [("all", "el"), ("variant:tonos_dropped",)]
        assert {q.gold["paragraph"] for q in dataset.questions} == {frozenset({"el-0"})}

    def test_scifact(self, tmp_path):
        write_lines(tmp_path / "documents.jsonl.gz", [{"id": "7", "title": "Cells", "text": "They divide."}])
        write_lines(tmp_path / "queries.jsonl", [{"id": "1", "text": "Do cells divide?", "gold": ["7"]}])
        dataset = _sets.load("scifact", tmp_path)
        (entry,) = dataset.histories["scifact"]()
        assert messages_of(entry.turn) == ["Cells\nThey divide."]
        assert dataset.questions[0].gold == {"document": {"7"}}

    def test_lifebench(self, tmp_path):
        sms = {"type": "sms", "event_id": 1, "datetime": "2025-01-02 10:00:00", "message_content": "Tea?"}
        health = {"日期": "2025-01-01", "睡眠": {"睡眠得分": "82"}, "phone_id": 0}
        records = {"sms": [sms | {"phone_id": 4}, sms | {"phone_id": "3", "datetime": "2025-01-01 09:00:00"}]}
        write(tmp_path / "en.records.json.gz", records | {"contact": [], "fitness_health": [health]})
        asked = {"question": "Who wanted tea?", "question_type": "Multi-hop reasoning"}
        evidence = [{"type": "sms", "id": "4"}, {"type": "note", "id": 99}]
        write(tmp_path / "en.questions.json", [asked | {"evidence": evidence}, {**asked, "evidence": []}, asked])
        dataset = _sets.load("lifebench", tmp_path)
        entries = list(dataset.histories["en"]())
        assert [(e.turn.conversation, e.turn.id, e.item) for e in entries] == [
            ("sms", "00000", "sms/3"),
            ("sms", "00001", "sms/4"),
            ("fitness_health", "00000", "fitness_health/0"),
        ]
        assert messages_of(entries[0].turn) == ["2025-01-01 09:00:00\nTea?"]
        assert entries[0].turn.submissions[0].author == "sms"
        (question,) = dataset.questions
        assert question.gold == {"record": {"sms/4"}}
        assert question.groups == ("all", "en", "Multi-hop reasoning")

    def test_a_limit_is_spread_over_the_set_and_keeps_the_users_that_ask(self, tmp_path):
        dataset = _sets.load("locomo", locomo_folder(tmp_path))
        assert limited(dataset, None).questions == dataset.questions
        assert limited(dataset, 1).questions == dataset.questions[:1]
        assert limited(dataset, 5).questions == dataset.questions


def lines_of(printed: str) -> list[dict]:
    return [json.loads(line) for line in printed.splitlines()]


class TestRecall:
    def test_end_to_end(self, tmp_path, capsys):
        folder, store = locomo_folder(tmp_path / "data"), tmp_path / "store"
        arguments = ["--set", "locomo", "--data", str(folder), "--embedder", "none", "--db", str(store), "--floor"]
        assert recall.main(arguments) == 0
        lines = lines_of(capsys.readouterr().out)
        assert [(line["unit"], line["group"], line["lists"]) for line in lines] == [
            (unit, group, lists)
            for lists in (["floor"], ["lexical", "trigram"])
            for unit in ("message", "session")
            for group in ("all", "single-hop", "multi-hop")
        ]
        for line in lines:
            assert (line["set"], line["embedder"]) == ("locomo", "none")
            assert 0 < line["p50_ms"] <= line["p95_ms"]
            assert list(line["metrics"]) == [f"{m}@{k}" for k in (1, 5, 10) for m in ("any", "all", "rec")] + [
                "mrr",
                "ndcg@10",
            ]
        best = next(line for line in lines if line["group"] == "single-hop")
        assert best["n"] == 1
        assert best["metrics"]["any@1"] == 1.0
        # The store is kept and used again; nothing is recorded twice.
        assert recall.main(arguments) == 0
        again = lines_of(capsys.readouterr().out)
        assert [line["metrics"] for line in again] == [line["metrics"] for line in lines]

    def test_an_embedder_of_ones_own(self, tmp_path, capsys):
        folder = longmemeval_folder(tmp_path)
        arguments = ["--set", "longmemeval-pool", "--data", str(folder), "--embedder", HASHED, "--lists", "semantic"]
        assert recall.main(arguments) == 0
        lines = lines_of(capsys.readouterr().out)
        assert [(line["unit"], line["group"], line["pool"]) for line in lines] == [
            ("session", "all", 3),
            ("session", "knowledge-update", 3),
        ]
        assert lines[0]["lists"] == ["semantic"]
        assert lines[0]["metrics"]["any@5"] == 1.0

    def test_a_turn_counts_by_its_best_message(self, tmp_path, capsys):
        arguments = ["--set", "longmemeval", "--data", str(longmemeval_folder(tmp_path)), "--embedder", "none"]
        assert recall.main([*arguments, "--limit", "1"]) == 0
        lines = {(line["unit"], line["group"]): line for line in lines_of(capsys.readouterr().out)}
        assert lines["turn", "all"]["metrics"]["any@1"] == 1.0
        assert lines["message", "all"]["metrics"]["rec@1"] == 0.5
        assert lines["session", "all"]["metrics"]["all@1"] == 1.0

    @pytest.mark.parametrize(
        "wrong",
        [
            ["--lists", "lexical,psychic"],
            ["--lists", "semantic", "--embedder", "none"],
            ["--limit", "0"],
        ],
    )
    def test_wrong_usage_is_refused(self, tmp_path, capsys, wrong):
        with pytest.raises(SystemExit) as stopped:
            recall.main(["--set", "locomo", "--data", str(tmp_path), *wrong])
        assert stopped.value.code == 2
        assert wrong[0] in capsys.readouterr().err


class TestLatency:
    def test_made_up_texts_are_the_same_for_a_seed(self):
        first, second = Synthetic(3, 500), Synthetic(3, 500)
        made = [first.message() for _ in range(20)]
        assert made == [second.message() for _ in range(20)]
        assert first.question(made) == second.question(made)
        said = list(turns(first, 24))
        assert [(turn.conversation, turn.id) for turn in said[9:11]] == [("c0", "t9"), ("c1", "t0")]

    def test_end_to_end(self, capsys):
        arguments = ["--rows", "20,40", "--others", "20", "--queries", "3", "--turns", "20", "--messages", "40"]
        assert latency.main([*arguments, "--embedder", HASHED, "--only", "search,record,import"]) == 0
        printed = capsys.readouterr()
        lines = {line["figure"]: line for line in lines_of(printed.out)}
        for figure in ("search, hybrid, 40 rows", "search, lexical, 20 rows", "record, 1 writer, durable"):
            line = lines[figure]
            assert line["n"] == (20 if "record" in figure else 3)
            assert list(line)[:7] == ["figure", "n", "p50_ms", "p95_ms", "floor_p50_ms", "ratio", "target"]
            assert line["ratio"] == pytest.approx(line["p50_ms"] / line["floor_p50_ms"], abs=0.5)
        assert lines["import, without vectors"]["n"] == 40
        assert lines["record, 32 writers, durable"]["turns_per_second"] > 0
        assert lines["store bytes / text bytes"]["ratio"] > 0
        assert "p50 ≤ 1.5 × floor" in printed.err


class TestServe:
    def test_end_to_end(self, capsys):
        little = ["--rows", "20", "--clients", "1,2", "--requests", "4", "--turns", "4", "--hour", "6"]
        assert serve.main([*little, "--embedder", "none"]) == 0
        lines = {line["figure"]: line for line in lines_of(capsys.readouterr().out)}
        told = "search over HTTP, 20 rows, 2 clients", "remember over HTTP, 20 rows, 1 clients"
        for figure in (*told, "accept a submission, 2 clients", "turn with its answer, 1 clients"):
            assert lines[figure]["n"] == 4
            assert lines[figure]["p95_ms"] >= lines[figure]["p50_ms"] > 0
            assert lines[figure]["per_second"] > 0
        assert set(lines["memory of the server, MB"]) >= {"before", "after", "after 6 more searches"}


class TestScale:
    def test_histories_are_the_same_for_a_seed_and_spread_over_a_year(self):
        first, second = Histories(3), Histories(3)
        made = first.turns(400)
        assert made == second.turns(400)
        assert len({(turn.conversation, turn.id) for turn in made}) == 200
        assert (made[-1].started - made[0].started).days > 200
        assert list(small_users(1001, 200)) == [200] * 5
        vectors = MadeUp(16).embed(["where is the ferry", "the ferry", "and"])
        assert vectors.shape == (3, 16)
        assert (vectors**2).sum(1) == pytest.approx([1, 1, 1])

    def test_both_engines_end_to_end(self, tmp_path, capsys, monkeypatch):
        monkeypatch.setattr(_scale_loading, "SIZES", (40,))
        urls = [server().take(), server().take()]
        for url in urls:
            with psycopg.connect(split_partitions(url)[0], autocommit=True) as db:
                db.execute("DROP SCHEMA IF EXISTS threefold CASCADE")
        arguments = ["--rows", "60,120", "--users", "4", "--clients", "1,2", "--processes", "1", "--seconds", "0.2"]
        places = ["--postgres", urls[0], "--postgres-floor", urls[1], "--keep", str(tmp_path / "kept")]
        assert scale.main([*arguments, *places, "--questions", "5", "--dimensions", "16"]) == 0
        printed = capsys.readouterr()
        lines = lines_of(printed.out)
        seen = {(line["engine"], line["what"], line["rows"]) for line in lines}
        for engine in ("sqlite", "postgres"):
            for what in ("load", "search", "record", "semantic recall@10"):
                assert {(engine, what, 60), (engine, what, 120)} <= seen
            assert (engine, "growth", 120) in seen
        for line in lines:
            assert line["benchmark"] == "scale"
            if line["what"] in ("search", "record", "load") and line.get("clients", 1) == 1 and "kind" not in line:
                assert line["ratio"] > 0
            if line["what"] == "semantic recall@10":
                assert line["recall"] == 1.0
            if line["what"] == "agreement":
                assert line["equal_hits"] == 1.0
        assert {line["clients"] for line in lines if line["what"] == "record"} == {1, 2}
        assert "bytes per row" in printed.err


class TestPeers:
    def test_a_sample_holds_messages_with_the_item_that_each_counts_as(self, tmp_path):
        folder = locomo_folder(tmp_path / "locomo")
        made = sample(tmp_path, ["locomo"], rows=6, others=4, added=2, asked=3, limit=None)
        assert [len(made[name]) for name in ("rows", "others", "turns", "questions")] == [6, 4, 2, 3]
        assert {row[0] for row in made["others"]} == {"other-0"}
        found = made["sets"]["locomo"]
        assert found["items"] == ["D1:1:user", "D1:2:assistant", "D2:1:assistant", "D2:2:user"]
        assert driver.Row(*found["rows"][1]).id == "conv-1|session_1|00001|assistant"
        assert driver.Row(*found["rows"][1]).said == "Ben: Lovely! Does it like the beach?"
        assert found["questions"][0] == {
            "text": "What is the greyhound called?",
            "user": "conv-1",
            "gold": ["D1:1:user"],
        }
        assert sample(folder, ["locomo"], 2, 0, 2, 1, None)["sets"]["locomo"] == found

    def test_batches_keep_users_apart_and_turns_whole(self):
        names = [("a", "1"), ("a", "1"), ("a", "2"), ("a", "3"), ("a", "3"), ("b", "3")]
        rows = [driver.Row(user, "c", turn, "user", "", "") for user, turn in names]
        assert [len(batch) for batch in driver.batches(rows, 1)] == [2, 1, 2, 1]
        assert [len(batch) for batch in driver.batches(rows, 3)] == [3, 2, 1]
        assert [len(batch) for batch in driver.batches(rows, 9)] == [5, 1]

    def test_a_peer_that_cannot_be_installed_hides_no_other(self, tmp_path, capsys, monkeypatch):
        def environment(name, envs, python):
            if name == "chroma":
                raise peers.Failed("no such package", "")
            return peers.Environment(Path(sys.executable), 5_000_000)

        page = tmp_path / "page.md"
        page.write_text("before\n<!-- figures: peers -->\nstale\n<!-- /figures: peers -->\nafter\n", "utf-8")
        monkeypatch.setattr(peers, "environment", environment)
        monkeypatch.setattr(peers, "DOCS", page)
        monkeypatch.setattr(peers, "_STARTS", 1)
        # The driver sees the package as this process does.
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
        folder = locomo_folder(tmp_path / "data")
        counts = ["--rows", "20", "--others", "10", "--turns", "4", "--questions", "3"]
        arguments = ["--peers", "chroma,threefold", "--data", str(folder), "--write-docs", *counts]
        assert peers.main(arguments) == 0
        printed = capsys.readouterr()
        lines = {(line["peer"], line["figure"]): line for line in lines_of(printed.out)}
        assert lines["chroma", "failed"]["why"] == "no such package"
        assert lines["threefold", "about"]["durable"] == "power loss"
        assert lines["threefold", "add, batches"]["n"] == 30
        assert lines["threefold", "add, turns"]["n"] == 4
        assert lines["threefold", "search, filtered"]["n"] == 3
        assert 0 < lines["threefold", "start"]["open_ms"] <= lines["threefold", "start"]["answer_ms"]
        assert lines["threefold", "recall, locomo"]["metrics"]["any@5"] == 1.0
        assert "install failed: no such package" in printed.err
        written = page.read_text("utf-8")
        assert written.startswith("before\n<!-- figures: peers -->\n")
        assert written.endswith("\n<!-- /figures: peers -->\nafter\n")
        assert "stale" not in written
        assert "| threefold 0.1.0 | 5 |" in written

    @pytest.mark.parametrize("wrong", [["--peers", "threefold,elephant"], ["--set", "xquad"]])
    def test_wrong_usage_is_refused(self, capsys, wrong):
        with pytest.raises(SystemExit):
            peers.main(wrong)
        assert wrong[0] in capsys.readouterr().err

    def test_the_requirements_name_a_version_of_every_peer(self):
        for name, (_, _, distribution) in driver.PEERS.items():
            file = REQUIREMENTS / f"{name.partition('-')[0]}.txt"
            if name.startswith("threefold"):
                assert not file.exists()
            elif name != "langgraph-memory":
                assert f"{distribution}==" in file.read_text("utf-8")
