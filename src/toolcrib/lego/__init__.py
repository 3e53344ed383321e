"""Stacking tools: bricks with a common shape, pipelines made of them, and a planner that finds the stack."""

from __future__ import annotations

from toolcrib.lego.brick import BatchBrick, Brick, BrickConfig, Secrets, StepContext
from toolcrib.lego.checking import Joint, PipelineReport
from toolcrib.lego.definition import PipelineDefinition, StepDefinition, read_definition
from toolcrib.lego.index import CompatibilityIndex, find_compatible
from toolcrib.lego.installed import InstalledBricks
from toolcrib.lego.items import Item, Page, Record, Request, Stored
from toolcrib.lego.pipeline import Pipeline, load_pipeline
from toolcrib.lego.planner import Miss, Plan, Planner, Stack, plan
from toolcrib.lego.reports import FailedRequest, Progress, RunReport
from toolcrib.lego.step import StepStatistics

__all__ = [
    "BatchBrick",
    "Brick",
    "BrickConfig",
    "CompatibilityIndex",
    "FailedRequest",
    "InstalledBricks",
    "Item",
    "Joint",
    "Miss",
    "Page",
    "Pipeline",
    "PipelineDefinition",
    "PipelineReport",
    "Plan",
    "Planner",
    "Progress",
    "Record",
    "Request",
    "RunReport",
    "Secrets",
    "Stack",
    "StepContext",
    "StepDefinition",
    "StepStatistics",
    "Stored",
    "find_compatible",
    "load_pipeline",
    "plan",
    "read_definition",
]
