"""Curated memory: remember, recall, memories."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from threefold.errors import InvalidInput
from threefold.model.memory import LAYERS, STATUSES, VISIBILITIES, Memory
from threefold.realms.mem import Mem
from threefold.surfaces.cli.context import Context, bold, counted, dim, one_line, visible, warn

if TYPE_CHECKING:
    import threefold
    from threefold.realms.mem.judging import Judge

_SIZE = 200
Run = Callable[[Context, argparse.Namespace], int]
# Acts on one memory that take no more than its id and a reason.
_ACTS = {
    "confirm": "a proposal is held from now on, a held one more firmly",
    "reject": "refuse a proposal",
    "retire": "hold it no more, and keep it with its history",
    "contradict": "hold it less firmly",
    "undo": "take the last change back",
}


def add_commands(commands: Any) -> None:
    """Add this file's commands."""
    command = commands.add_parser("remember", help="keep a memory; the same again confirms it")
    command.add_argument("memory", nargs="+", help="the compact note")
    command.add_argument("--context", default="", help="why it is there")
    command.add_argument("--kind", default="fact", help="such as fact, preference, decision (default: fact)")
    command.add_argument("--layer", choices=LAYERS, default="longterm", help="how long it lives (default: longterm)")
    command.add_argument("--tag", action="append", default=[], help="a tag; may be repeated")
    command.add_argument("--owner", help="whom or what it is about, where that is not the user")
    command.add_argument("--importance", type=float, help="from 0 to 1")
    command.add_argument("--visibility", choices=VISIBILITIES, default="shared", help="who sees it (default: shared)")
    command.add_argument("--source", help="a reference or name of what it came from")
    command.add_argument("--ttl", type=float, metavar="SECONDS", help="how long it lives instead of its layer's time")
    command.add_argument("--pin", action="store_true", help="put it into the hotset")
    command.add_argument("--agent", help="write as this agent: a proposal, unless the policy says otherwise")
    command.set_defaults(run=remember)
    command = commands.add_parser("recall", help="find memories by a question")
    command.add_argument("query", nargs="+", help="a question or words, in any language")
    command.add_argument("--mode", choices=("hybrid", "fulltext", "semantic"), default="hybrid", help="default: hybrid")
    command.add_argument("--min-relevance", type=float, default=0.0, metavar="SHARE", help="from 0 to 1")
    command.add_argument("--min-confidence", type=float, default=0.0, metavar="SHARE", help="from 0 to 1")
    command.add_argument("--explain", action="store_true", help="show how each score came about (with --json)")
    _add_filters(command)
    command.set_defaults(run=recall)
    command = commands.add_parser("memories", help="curate what is remembered")
    _add_acts(command.add_subparsers(title="acts", metavar="ACT", required=True))


def _add_acts(acts: Any) -> None:
    act = acts.add_parser("list", help="memories, those last touched first")
    _add_filters(act)
    act.set_defaults(run=list_)
    act = acts.add_parser("proposals", help="what waits to be confirmed or rejected")
    act.add_argument("--limit", type=int, default=20, help="how many (default: 20)")
    act.set_defaults(run=proposals)
    act = acts.add_parser("hotset", help="the memories that every turn begins with")
    act.add_argument("goal", nargs="*", help="what is to be done")
    act.set_defaults(run=hotset)
    _one(acts, "show", "one memory with its evidence and scores", show).add_argument(
        "--as-of", metavar="TIME", help="as it stood then"
    )
    _one(acts, "history", "what became of it", history)
    for name, about in _ACTS.items():
        _one(acts, name, about, _act(name)).add_argument("--why", help="a reason, kept in the history")
    _one(acts, "pin", "into the hotset", _changed(lambda mem, options: mem.pin(options.id)))
    _one(acts, "unpin", "out of the hotset", _changed(lambda mem, options: mem.pin(options.id, False)))
    act = _one(acts, "update", "change a memory", _changed(_update))
    for name, about in (
        ("memory", "the note"),
        ("context", "why it is there"),
        ("kind", "the kind"),
        ("owner", "whom"),
    ):
        act.add_argument(f"--{name}", help=f"{about}, anew")
    act.add_argument("--layer", choices=LAYERS, help="how long it lives")
    act.add_argument("--importance", type=float, help="from 0 to 1")
    act.add_argument("--add-tag", action="append", default=[], metavar="TAG", help="may be repeated")
    act.add_argument("--remove-tag", action="append", default=[], metavar="TAG", help="may be repeated")
    act.add_argument("--revision", type=int, help="only if it is at this one")
    act.add_argument("--why", help="a reason, kept in the history")
    _one(acts, "delete", "remove it with its history from every file of the store", delete)
    act = acts.add_parser("reconcile", help="find memories that say the same, more, the opposite, or are stale")
    act.add_argument("--apply", action="store_true", help="do what is proposed, in one transaction")
    act.add_argument("--undo", metavar="ID", help="take back what a proposal did")
    act.set_defaults(run=reconcile)
    act = acts.add_parser("import", help="memories of other systems from JSON: mem0's, ChatGPT's memory.json")
    act.add_argument("path", nargs="+", help="a file")
    act.set_defaults(run=import_)
    act = acts.add_parser(
        "sync", help="a folder of Markdown files to read and edit, brought together with what is held"
    )
    act.add_argument("folder", help="made where it is missing")
    act.set_defaults(run=sync)
    act = acts.add_parser("policy", help="what agents may do with memory")
    act.add_argument("rule", nargs="?", choices=("off", "propose", "auto"), help="set it; without: show it")
    act.add_argument("--kind", action="append", default=[], help="with auto: a kind that is held at once")
    act.add_argument("--of", metavar="AGENT", help="of one agent (default: of all)")
    act.set_defaults(run=policy)
    act = acts.add_parser("decay", help="run a cycle of decay over all memories of the store")
    act.add_argument("--factor", type=float, default=0.95, help="what relevance is multiplied by (default: 0.95)")
    act.add_argument("--floor", type=float, default=0.1, help="relevance does not fall below (default: 0.1)")
    act.add_argument(
        "--older-than", type=float, default=86_400, metavar="SECONDS", help="untouched for (default: a day)"
    )
    act.add_argument("--cycle", help="its name; a cycle runs once (default: the day)")
    act.set_defaults(run=decay)


def _one(acts: Any, name: str, about: str, run: Run) -> argparse.ArgumentParser:
    act: argparse.ArgumentParser = acts.add_parser(name, help=about)
    act.add_argument("id", help="as list and recall print it")
    act.set_defaults(run=run)
    return act


def _add_filters(command: argparse.ArgumentParser) -> None:
    command.add_argument("--layer", action="append", choices=LAYERS, help="only this layer; may be repeated")
    command.add_argument("--tag", action="append", help="with this tag; all that are given")
    command.add_argument("--kind", action="append", help="only this kind; may be repeated")
    command.add_argument("--owner", help="about whom or what")
    command.add_argument(
        "--status", action="append", choices=STATUSES, help="in this state (default: active, weakened)"
    )
    command.add_argument("--limit", type=int, default=20, help="how many (default: 20)")


def _filters(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "layers": options.layer, "tags": options.tag, "kinds": options.kind, "owner": options.owner,
        "statuses": options.status, "limit": options.limit,
    }  # fmt: skip


def remember(context: Context, options: argparse.Namespace) -> int:
    """Keep a memory and say what became of it."""
    with context.open(make=True) as db:
        mem = db.user(context.user, context.tenant, agent=options.agent).mem
        record = mem.remember(
            " ".join(options.memory),
            context=options.context,
            kind=options.kind,
            layer=options.layer,
            tags=options.tag,
            owner=options.owner,
            importance=options.importance,
            pinned=options.pin,
            visibility=options.visibility,
            source=options.source,
            ttl=None if options.ttl is None else timedelta(seconds=options.ttl),
        )
        db.embed_pending(limit=100)
    return _print_one(context, record)


def recall(context: Context, options: argparse.Namespace) -> int:
    """Print memories that answer."""
    with context.open() as db:
        found = context.handle(db).mem.recall(
            " ".join(options.query),
            **_filters(options),
            min_relevance=options.min_relevance,
            min_confidence=options.min_confidence,
            mode=options.mode,
            explain=options.explain,
        )
    if context.json:
        said = {"mode": found.mode, "warnings": list(found.warnings)}
        context.emit({"memories": [each.as_json() for each in found], **said})
        return 0
    for warning in found.warnings:
        warn(warning)
    for number, each in enumerate(found, 1):
        print(f"{number}. {_line(each.record)}  {dim(f'score {each.score:.3f}')}")
        _print_about(each.record)
    if not found:
        print("nothing found")
    return 0


def list_(context: Context, options: argparse.Namespace) -> int:
    """Print memories, those last touched first."""
    with context.open() as db:
        return _print_many(context, context.handle(db).mem.list(**_filters(options)), "no memories")


def proposals(context: Context, options: argparse.Namespace) -> int:
    """Print what waits."""
    with context.open() as db:
        return _print_many(context, context.handle(db).mem.proposals(options.limit), "nothing is proposed")


def hotset(context: Context, options: argparse.Namespace) -> int:
    """Print the hotset and how each got in."""
    with context.open() as db:
        hot = context.handle(db).mem.hotset(" ".join(options.goal) or None)
    if context.json:
        shown = [{**each.record.as_json(evidence=False), "because": dict(each.because)} for each in hot]
        context.emit({"hotset": shown})
        return 0
    for number, each in enumerate(hot, 1):
        print(f"{number}. {_line(each.record)}  {dim(_because(each.because))}")
    if not hot:
        print("the hotset is empty")
    return 0


def _because(because: Mapping[str, Any]) -> str:
    parts = ["pinned"] if because["pinned"] else []
    parts.append(f"salience {because['salience']:.2f}")
    if "answers_goal" in because:
        parts.append(f"answers the goal {because['answers_goal']:.3f}")
    return ", ".join(parts)


def show(context: Context, options: argparse.Namespace) -> int:
    """Print one memory whole."""
    with context.open() as db:
        mem = context.handle(db).mem
        record, scores = mem.get(options.id, options.as_of), mem.scores(options.id)
    if context.json:
        context.emit({"memory": {**record.as_json(), "scores": scores.as_json()}})
        return 0
    print(_line(record))
    _print_about(record)
    if record.context:
        print(f"   {visible(record.context)}")
    shown = {name: value for name, value in scores.as_json().items() if name != "because"}
    print(f"   {dim(', '.join(f'{name} {value:.2f}' for name, value in shown.items()))}")
    for each in record.evidence:
        source = f" ({visible(each.source)})" if each.source else ""
        print(f"   {dim(f'{each.at:%Y-%m-%d %H:%M}  {each.signal} by {visible(each.agent or each.by)}{source}')}")
    return 0


def history(context: Context, options: argparse.Namespace) -> int:
    """Print every revision."""
    with context.open() as db:
        revisions = context.handle(db).mem.history(options.id)
    if context.json:
        context.emit({"history": [each.as_json() for each in revisions]})
        return 0
    for each in revisions:
        why = f": {one_line(each.why, _SIZE)}" if each.why else ""
        print(f"{each.record.revision}. {each.at:%Y-%m-%d %H:%M}  {each.act} by {visible(each.agent or each.by)}{why}")
        print(f"   {one_line(each.record.memory, _SIZE)}")
    return 0


def delete(context: Context, options: argparse.Namespace) -> int:
    """Remove a memory and print the receipt."""
    with context.open() as db:
        receipt = context.handle(db).mem.delete(options.id)
    if context.json:
        context.emit({"removed": dict(receipt.stores), "leftovers": list(receipt.leftovers)})
        return 0
    print(f"removed {visible(options.id)} with its history")
    for left in receipt.leftovers:
        warn(f"left for later: {left}")
    return 0


def reconcile(context: Context, options: argparse.Namespace) -> int:
    """Print what is to be done, and do it where asked."""
    with context.open() as db:
        mem = context.handle(db).mem
        if options.undo is not None:
            undone = mem.undo_proposal(options.undo)
            if context.json:
                context.emit({"undone": list(undone)})
            else:
                print(counted(len(undone), "memories stand as they did before", "memory stands as it did before"))
            return 0
        proposal = mem.reconcile(options.apply, judge=_judge(db))
        named = {id_: mem.get(id_) for id_ in proposal.seen}
    if context.json:
        context.emit(proposal.as_json())
        return 0
    for number, step in enumerate(proposal.steps, 1):
        print(f"{number}. {bold(step.act)}  {one_line(named[step.give].memory, _SIZE)}")
        if step.keep is not None:
            print(f"   {dim('beside')} {one_line(named[step.keep].memory, _SIZE)}")
        print(f"   {dim(visible(f'{step.give}: {step.why}'))}")
    for warning in proposal.warnings:
        warn(warning)
    if not proposal:
        print("nothing to reconcile")
    elif proposal.applied:
        print(f"applied; threefold memories reconcile --undo {proposal.id} takes it back")
    else:
        print("nothing was changed; --apply does it")
    return 0


def _judge(db: threefold.Threefold) -> Judge | None:
    """The chat model, where one is set up: it is asked where the rules are unsure."""
    if db.chat is None:
        return None
    from threefold.models.judging import model_judge

    return model_judge(db.chat)


def import_(context: Context, options: argparse.Namespace) -> int:
    """Take in memories of other systems."""
    with context.open(make=True) as db:
        done = [context.handle(db).mem.import_memories(path) for path in options.path]
        db.embed_pending()
    imported, unchanged = sum(each.imported for each in done), sum(each.unchanged for each in done)
    skipped = [each for one in done for each in one.skipped]
    if context.json:
        said = [{"where": each.where, "why": each.why} for each in skipped]
        context.emit({"imported": imported, "unchanged": unchanged, "skipped": said})
        return 0
    print(f"{imported} imported, {unchanged} there already, {len(skipped)} skipped")
    for each in skipped:
        warn(f"skipped {each.where}: {each.why}")
    return 0


def sync(context: Context, options: argparse.Namespace) -> int:
    """Bring a folder and memory together; conflicts are shown and make the exit status 1."""
    with context.open() as db:
        done = context.handle(db).mem.sync(options.folder)
        db.embed_pending()
    counts = {name: getattr(done, name) for name in ("written", "updated", "created", "retired")}
    told = {"conflicts": done.conflicts, "skipped": done.skipped}
    if context.json:
        shown = {name: [{"file": file, "why": why} for file, why in each] for name, each in told.items()}
        context.emit({**counts, **shown})
    else:
        print(", ".join(f"{len(ids)} {name}" for name, ids in counts.items()))
        for name, each in told.items():
            for file, why in each:
                warn(f"{name}: {file}: {why}")
    return 1 if done.conflicts or done.skipped else 0


def policy(context: Context, options: argparse.Namespace) -> int:
    """Print or set what agents may do."""
    with context.open(make=options.rule is not None) as db:
        mem = context.handle(db).mem
        found = mem.policy(options.of) if options.rule is None else mem.allow(options.rule, options.kind, options.of)
    if context.json:
        context.emit({"rule": found.rule, "kinds": list(found.kinds)})
        return 0
    kinds = f" for {', '.join(map(visible, found.kinds))}" if found.kinds else ""
    print(f"{visible(options.of) if options.of else 'agents'}: {found.rule}{kinds}")
    return 0


def decay(context: Context, options: argparse.Namespace) -> int:
    """Run a cycle of decay."""
    with context.open() as db:
        ran = db.decay(options.factor, options.floor, options.older_than, options.cycle)
    if context.json:
        context.emit({"ran": ran})
    else:
        print("memories that were not touched are less relevant now" if ran else "this cycle ran already")
    return 0


def _act(name: str) -> Run:
    return _changed(lambda mem, options: getattr(mem, name)(options.id, options.why))


def _changed(change: Callable[[Mem, argparse.Namespace], Memory]) -> Run:
    """A command that changes one memory and prints it."""

    def run(context: Context, options: argparse.Namespace) -> int:
        with context.open() as db:
            record = change(context.handle(db).mem, options)
            db.embed_pending(limit=100)
        return _print_one(context, record)

    return run


def _update(mem: Mem, options: argparse.Namespace) -> Memory:
    names = ("memory", "context", "kind", "owner", "layer", "importance")
    changes = {name: value for name in names if (value := getattr(options, name)) is not None}
    if options.add_tag or options.remove_tag:
        changes["tags"] = {"add": options.add_tag, "remove": options.remove_tag}
    if not changes:
        raise InvalidInput("nothing to update; name what is to change, such as --memory TEXT")
    return mem.update(options.id, revision=options.revision, why=options.why, **changes)


def _print_one(context: Context, record: Memory) -> int:
    if context.json:
        redacted = {"redacted": dict(record.redacted)} if record.redacted else {}
        context.emit({"memory": {**record.as_json(), **redacted}})
        return 0
    print(_line(record))
    _print_about(record)
    return 0


def _print_many(context: Context, records: Sequence[Memory], none: str) -> int:
    if context.json:
        context.emit({"memories": [record.as_json(evidence=False) for record in records]})
        return 0
    for number, record in enumerate(records, 1):
        print(f"{number}. {_line(record)}")
        _print_about(record)
    if not records:
        print(none)
    return 0


def _line(record: Memory) -> str:
    return bold(one_line(record.memory, _SIZE))


def _print_about(record: Memory) -> None:
    parts = [record.id, record.kind, record.layer, record.status, f"revision {record.revision}"]
    parts += [f"#{tag}" for tag in record.tags]
    parts += ["pinned"] if record.pinned else []
    parts += [f"redacted: {count} {kind}" for kind, count in record.redacted.items()]
    print(f"   {dim(', '.join(map(visible, parts)))}")
