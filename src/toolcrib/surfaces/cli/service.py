"""``serve``, ``tokens``, ``doctor``, ``backup``, ``restore``, ``bundles``, ``policy outbox``: running the service."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from toolcrib.core.errors import Exit
from toolcrib.surfaces.cli.invocation import JsonOption, LimitOption, StoreOption, example, invocation
from toolcrib.surfaces.cli.output import complain, print_json, print_table

if TYPE_CHECKING:
    from toolcrib.core.limits import TokenLimits

_DAY_SECONDS = 86_400
_HOUR_SECONDS = 3_600

RolesOption = Annotated[
    list[str],
    typer.Option(
        "--role",
        metavar="ROLE",
        help="reader, runner (reads and runs), publisher (reads and changes) or admin; may be repeated.",
    ),
]
NameOption = Annotated[str, typer.Option("--name", metavar="NAME", help="Who will hold it: the name in the audit log.")]
ToolsOption = Annotated[
    list[str] | None,
    typer.Option("--tool", metavar="NAME", help="Only this tool; may be repeated.", show_default=False),
]
TagsOption = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="TAG", help="Only tools with this tag; may be repeated.", show_default=False),
]
ActionsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--action",
        metavar="ACTION",
        help="Only this: read, run, create, update or delete; may be repeated.",
        show_default=False,
    ),
]
BlobsOption = Annotated[
    str,
    typer.Option(
        "--blobs",
        metavar="URL",
        help="Where bundles are kept: file:///PATH or s3://BUCKET?endpoint=...; by default a folder in data_dir.",
        show_default=False,
    ),
]
DaysOption = Annotated[float, typer.Option("--days", metavar="N", help="When it expires; 0 is never.", min=0)]


class WithDefaults(TyperCommand):
    """A command whose options are settings: its help shows what counts if these are set nowhere."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.fill_defaults()
        super().format_help(ctx, formatter)

    def fill_defaults(self) -> None:
        """From the settings, which are loaded for who wants help, and not whenever the program starts."""
        from toolcrib.settings import describe

        defaults = {setting.name: setting.default for setting in describe()}
        for param in self.params:
            if param.default is None:
                param.default = defaults.get(param.name or "") or None


def register(app: typer.Typer) -> None:
    app.command("serve", epilog=example("serve", "serve --port 8080 --sample"), cls=WithDefaults)(serve)
    app.command("doctor", epilog=example("doctor"))(doctor)
    app.command("backup", epilog=example("backup toolcrib-backup.zip"))(backup)
    app.command("restore", epilog=example("restore toolcrib-backup.zip"))(restore)
    tokens = typer.Typer(help="Tokens for the service.", no_args_is_help=True)
    tokens.command("create", epilog=example("tokens create --role runner --role publisher --name ci"))(create_token)
    tokens.command("list", epilog=example("tokens list"))(list_tokens)
    tokens.command("revoke", epilog=example("tokens revoke 1f2e3d4c5b6a"))(revoke_token)
    app.add_typer(tokens, name="tokens")
    bundles = typer.Typer(help="The code of uploaded tools.", no_args_is_help=True)
    bundles.command("collect", epilog=example("bundles collect --hours 1"))(collect)
    app.add_typer(bundles, name="bundles")
    policy = typer.Typer(help="The policy service.", no_args_is_help=True)
    policy.command("outbox", epilog=example("policy outbox"))(outbox)
    app.add_typer(policy, name="policy")


def serve(
    ctx: typer.Context,
    host: Annotated[str | None, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")] = None,
    port: Annotated[
        int | None, typer.Option("--port", metavar="N", help="Port to listen on.", min=1, max=65_535)
    ] = None,
    blobs: BlobsOption = "",
    workers: Annotated[
        int | None, typer.Option("--workers", metavar="N", help="How many processes answer.", min=1)
    ] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Put the sample tools into an empty catalogue.")] = False,
    store: StoreOption = "",
) -> None:
    """Serve the catalogue: REST, GraphQL and their pages."""
    from toolcrib.surfaces import serve as service

    settings = invocation(ctx, store).settings.with_changes(
        "option", host=host or None, port=port, blobs=blobs or None, workers=workers
    )
    service.serve(settings, sample=sample)


def doctor(ctx: typer.Context, store: StoreOption = "", as_json: JsonOption = False) -> None:
    """Check that the service has everything it needs. Exits with 1 if something is missing."""
    from toolcrib.surfaces.doctor import doctor as examine

    invoked = invocation(ctx, store, as_json)
    checks = examine(invoked.settings)
    if invoked.wants_json:
        print_json(checks)
    else:
        print_table(("Check", "Health", "Found"), [(check.name, check.health, check.detail) for check in checks])
    if any(check.health == "failed" for check in checks):
        raise typer.Exit(Exit.NO)


def backup(
    ctx: typer.Context,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write the backup.", show_default=False)],
    replace: Annotated[
        bool, typer.Option("--replace", "--force", help="Write over a file that is there.", show_default=False)
    ] = False,
    store: StoreOption = "",
) -> None:
    """Save every tool with its history, the bundles, the audit and the tokens in one file."""
    from toolcrib.surfaces.backups import backup as save

    print_json(save(invocation(ctx, store).settings, path, replace=replace))


def restore(
    ctx: typer.Context,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A file that backup wrote.", show_default=False)],
    store: StoreOption = "",
) -> None:
    """Put a backup back, into an empty store of any kind."""
    from toolcrib.surfaces.backups import restore as put_back

    print_json(put_back(invocation(ctx, store).settings, path))


def collect(
    ctx: typer.Context,
    hours: Annotated[float, typer.Option("--hours", metavar="N", help="The grace, at each of two stages.", min=1)] = 24,
    store: StoreOption = "",
) -> None:
    """Take away code that no tool names: first to the trash, and from there later. The service does so every hour."""
    from toolcrib.surfaces.collecting import collect_once

    with invocation(ctx, store).system() as system:
        print_json(collect_once(system, older_than=hours * _HOUR_SECONDS))


def create_token(
    ctx: typer.Context,
    role: RolesOption,
    name: NameOption = "",
    tool: ToolsOption = None,
    tag: TagsOption = None,
    action: ActionsOption = None,
    days: DaysOption = 0,
    store: StoreOption = "",
) -> None:
    """Make a token and print it: the only time that it can be seen. What limits it is told together: all must hold."""
    from toolcrib.core.limits import TokenLimits
    from toolcrib.core.roles import Role
    from toolcrib.core.tokens import new_token

    wanted = list(map(Role.parse, role))
    limits = TokenLimits(tuple(tool or ()), tuple(tag or ()), tuple(action or ()))
    seconds = days * _DAY_SECONDS
    token, record = new_token(name or "-".join(wanted), *wanted, now=time.time(), seconds=seconds, limits=limits)
    with invocation(ctx, store).system() as system:
        system.tokens.add(record)
    print(token)
    typer.echo(f"token {record.id} for {record.name!r}, role {_spaced(record.role)!r}; it is not shown again", err=True)


def list_tokens(ctx: typer.Context, store: StoreOption = "", as_json: JsonOption = False) -> None:
    """The tokens there are, without what would let anybody in."""
    invoked = invocation(ctx, store, as_json)
    with invoked.system() as system:
        records = system.tokens.all()
    rows = [
        {
            "id": record.id,
            "name": record.name,
            "role": _spaced(record.role),
            "limits": _limits(record.limits),
            "created": _day(record.created_at),
            "expires": _day(record.expires_at) if record.expires_at else "",
        }
        for record in records
    ]
    if invoked.wants_json:
        print_json(rows)
    else:
        print_table(("Id", "Name", "Role", "Limits", "Created", "Expires"), [tuple(row.values()) for row in rows])


def revoke_token(
    ctx: typer.Context,
    token_id: Annotated[str, typer.Argument(metavar="ID", help="As tokens list shows it.", show_default=False)],
    store: StoreOption = "",
) -> None:
    """Let a token in no longer; a running service forgets it within five seconds."""
    invoked = invocation(ctx, store)
    with invoked.system() as system:
        found = system.tokens.revoke(token_id)
    if not found:
        complain(invoked.program, f"there is no token {token_id!r}; tokens list shows those there are")
        raise typer.Exit(Exit.NOT_FOUND)
    print(f"revoked {token_id}")


def outbox(
    ctx: typer.Context,
    limit: LimitOption = 100,
    store: StoreOption = "",
    as_json: JsonOption = False,
) -> None:
    """Which events wait to be told to the policy service, and why."""
    invoked = invocation(ctx, store, as_json)
    with invoked.system() as system:
        waiting = system.store.outbox(limit=limit)
    if invoked.wants_json:
        print_json(waiting)
    else:
        print_table(
            ("Number", "Tool", "Event", "Tries", "Last error"),
            [(e.sequence, e.name, e.payload.get("event", ""), e.attempts, e.last_error) for e in waiting],
            empty="nothing waits",
        )


def _limits(limits: TokenLimits) -> str:
    kinds = (("tool", limits.tools), ("tag", limits.tags), ("action", limits.actions))
    return "; ".join(f"{kind} {', '.join(given)}" for kind, given in kinds if given)


def _spaced(roles: str) -> str:
    return roles.replace(",", ", ")


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")
