"""``pip install '.[cli]'`` is enough for the command line: everything else may be missing."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

# What the optional packages are called when they are imported, where that differs from the name of the package.
IMPORTED_AS = {
    "beautifulsoup4": "bs4",
    "curl-cffi": "curl_cffi",
    "google-re2": "re2",
    "graphql-core": "graphql",
    "langchain-core": "langchain_core",
    "llama-index-core": "llama_index",
    "openai-agents": "agents",
    "opentelemetry-api": "opentelemetry",
    "prometheus-client": "prometheus_client",
    "pydantic-ai-slim": "pydantic_ai",
    "pyjwt": "jwt",
    "python-multipart": "python_multipart",
}


def optional_modules() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {name(line) for line in (*project["dependencies"], *project["optional-dependencies"]["cli"])}
    listed = {name(line) for lines in project["optional-dependencies"].values() for line in lines}
    return sorted(IMPORTED_AS.get(one, one.replace("-", "_")) for one in listed - needed - {"toolcrib"})


def name(requirement: str) -> str:
    for sign in "[<>=;! ":
        requirement = requirement.partition(sign)[0]
    return requirement


RUN = """
import sys
for module in {modules}:
    sys.modules[module] = None
from toolcrib.surfaces.cli import run
statuses = [run(program, arguments) for program, *arguments in {commands}]
print(statuses)
sys.exit(statuses[-1])
"""


@pytest.fixture
def bare(home: Path):
    """Command lines, run one after the other in one process that lacks every optional package."""

    def call(*lines: str) -> subprocess.CompletedProcess[str]:
        code = RUN.format(modules=optional_modules(), commands=[line.split() for line in lines])
        return subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)

    return call


@pytest.mark.parametrize("program", ["toolcrib", "brain"])
def test_the_command_line_needs_no_other_extra(bare, program: str):
    expected = {
        "tools add --samples": 0,
        "tools list --type parser": 0,
        "tools show scrapy": 0,
        "tools search parser": 0,
        "tools check-compat playwright selenium": 1,
        "tools compatible playwright": 0,
        "tools plan html_parsing": 0,
        "tools export --format openai": 0,
        "tools remove scrapy --force": 0,
        "config": 0,
    }
    done = bare(*(f"{program} {line}" for line in expected))
    assert done.stdout.splitlines()[-1] == str(list(expected.values())), done.stderr


def test_what_is_missing_is_named_with_the_command_that_brings_it(bare, home: Path):
    (home / "pipeline.json").write_text('[{"tool": "httpx"}, {"tool": "parsel", "config": {"selectors": {"t": "h1"}}}]')
    checked = bare("toolcrib pipeline check pipeline.json")
    assert checked.returncode == 1
    assert "pip install" in checked.stdout
    for line in ("toolcrib serve", "toolcrib mcp", "toolcrib browser", "toolcrib tools run goto --url x"):
        done = bare(line)
        assert done.returncode in (1, 6), (line, done.stderr)
        assert "pip install" in done.stderr, line
        assert len(done.stderr.splitlines()) == 1, done.stderr
