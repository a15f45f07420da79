"""Tests of runner.catalog."""
