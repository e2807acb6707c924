"""The fixed words of a record: how a turn ended, what a person sent, how a step went, who speaks."""

from __future__ import annotations

from typing import Literal

Status = Literal["completed", "failed", "cancelled"]
SubmissionKind = Literal["prompt", "followup", "steer"]
StepStatus = Literal["started", "running", "completed", "error", "skipped"]
State = Literal["minimal", "rich"]

STATUSES: tuple[Status, ...] = ("completed", "failed", "cancelled")
SUBMISSION_KINDS: tuple[SubmissionKind, ...] = ("prompt", "followup", "steer")
STEP_STATUSES: tuple[StepStatus, ...] = ("started", "running", "completed", "error", "skipped")
ROLES = ("user", "assistant", "summary", "note", "attachment")
