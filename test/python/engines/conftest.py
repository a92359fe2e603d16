"""Runs the tests of drop-ins on the arrays of each library."""

from __future__ import annotations

import pytest
from devices import Device


@pytest.fixture
def device(library_device: Device) -> Device:
    return library_device
