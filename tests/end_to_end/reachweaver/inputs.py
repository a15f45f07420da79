"""Input files of ReachWeaver's tools, as its own validators ask for them, and invalid ones beside them."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

SEEN = "2026-11-01T10:00:00Z"
CAMPAIGN: dict[str, Any] = {
    "schema_version": 1,
    "campaign_id": "autumn",
    "brand_id": "lab",
    "audience": "people who keep old measurements",
    "objective": "qualified_visits",
    "cta_url": "https://example.org/release",
    "evidence": [
        {
            "id": "release-notes",
            "url": "https://example.org/release",
            "claim": "Version 2 reads files of version 1.",
            "excerpt": "Version 2 reads files of version 1 without conversion.",
            "kind": "release",
            "verification": "primary_source_checked",
            "checked_at": SEEN,
        }
    ],
    "variants": [
        {
            "id": "short",
            "account_id": "blue",
            "platform": "bluesky",
            "text": "Version 2 reads files of version 1. https://example.org/release",
            "evidence_ids": ["release-notes"],
            "angle": "old files",
            "cta": "read the notes",
        },
        {
            "id": "long",
            "account_id": "mast",
            "platform": "mastodon",
            "text": "Old files stay useful: version 2 reads what version 1 wrote, the fastest of all. @someone",
            "evidence_ids": ["release-notes"],
            "angle": "old files",
            "cta": "read the notes",
        },
    ],
}
BRAND: dict[str, Any] = {
    "schema_version": 1,
    "brand_id": "lab",
    "display_name": "Lab",
    "voice": "plain",
    "approved_accounts": ["blue", "mast"],
    "prohibited_claims": ["never fails"],
    "banned_phrases": ["game changer"],
    "max_hashtags": 2,
}
OPTOUT = {"version": 1, "entries": [{"handle": "someone", "recorded_on": "2026-10-01"}]}
PREFLIGHT: dict[str, Any] = {
    "schema_version": "reachweaver.creative-preflight.v1",
    "topic": "old measurements",
    "audience": {"description": "people who keep measurements", "keywords": ["measurements", "files"]},
    "goal": "qualified_visits",
    "facts": [
        {"id": "f1", "claim": "Version 2 reads version 1.", "source_url": "https://example.org/release"}
    ],
    "candidates": [
        {
            "id": "c1",
            "platform": "bluesky",
            "format": "text",
            "text": "Keep your old measurements: version 2 reads files of version 1.",
            "evidence_refs": ["f1"],
            "cta": "read the notes",
        }
    ],
}
MATCH: dict[str, Any] = {
    "schema_version": "reachweaver.creator-candidates.v1",
    "campaign_id": "autumn",
    "topic_terms": ["measurements"],
    "creators": [
        {
            "id": "creator-one",
            "platform": "youtube",
            "handle": "one",
            "profile_url": "https://example.com/one",
            "topics": ["measurements", "archives"],
            "recent_work_urls": ["https://example.com/one/work"],
            "reviewed_on": "2026-10-20",
            "status": "reviewed",
            "audience_reason": "Their readers keep measurements.",
            "remix_idea": "A comparison of old and new files.",
            "editorial_ratings": {"audience_value": 3, "remix_potential": 2},
        }
    ],
}
COVERAGE: dict[str, Any] = {
    "schema_version": "reachweaver.creator-coverage.v1",
    "campaign_id": "autumn",
    "original_url": "https://example.org/release",
    "published_at": "2026-10-20T10:00:00Z",
    "items": [
        {
            "creator_id": "creator-one",
            "url": "https://example.com/one/talk",
            "platform": "youtube",
            "kind": "review",
            "observed_at": "2026-10-21T10:00:00Z",
            "status": "owner_confirmed",
            "independent": True,
        }
    ],
}
DISCOVERY: dict[str, Any] = {
    "schema_version": 1,
    "platform": "mastodon",
    "text": "Version 2 reads files of version 1: old measurements stay useful.",
    "audience": "people who keep measurements",
    "keywords": ["old measurements", "files"],
    "candidates": [{"tag": "OldMeasurements", "kind": "niche"}],
    "as_of": "2026-11-01",
}
ENGAGEMENT: dict[str, Any] = {
    "schema_version": "reachweaver.engagement-export.v1",
    "items": [
        {
            "id": f"item-{number}",
            "platform": platform,
            "account_id": "blue",
            "author_handle": f"reader{number}",
            "author_is_owner": False,
            "text": text,
            "url": f"https://example.com/reply/{number}",
            "created_at": "2026-10-30T10:00:00Z",
        }
        for number, (platform, text) in enumerate(
            (
                ("bluesky", "It crashes with an error when I open a file. How do I fix this bug?"),
                ("mastodon", "Thank you, this is wonderful work! Mail me: reader@example.com"),
                ("reddit", "Could you add support for other units? A feature request."),
            )
        )
    ],
}
PEERS: dict[str, Any] = {
    "schema_version": "reachweaver.peer-benchmark.v1",
    "entries": [
        {
            "label": label,
            "platform": "bluesky",
            "kind": "project",
            "own": own,
            "public_data_only": True,
            "source_url": f"https://example.com/{label}",
            "observed_at": SEEN,
            "counters": {"followers": followers, "posts": 10},
        }
        for label, own, followers in (
            ("lab", True, 120),
            ("a", False, 100),
            ("b", False, 200),
            ("c", False, 90),
        )
    ],
}
AUDIT: dict[str, Any] = {
    "schema_version": "reachweaver.profile-post-audit.v1",
    "brand_name": "Lab",
    "preferred_handle": "lab",
    "profiles": [
        {
            "platform": "bluesky",
            "account_id": "blue",
            "handle": "lab.bsky.social",
            "fields": {"bio": "We keep measurements.", "website": "https://example.org"},
        }
    ],
    "posts": [
        {
            "platform": "bluesky",
            "account_id": "blue",
            "post_id": "p1",
            "format": "text",
            "source": "export",
            "published_at": "2026-10-20T10:00:00Z",
            "observed_at": "2026-10-21T10:00:00Z",
            "metrics": {"likes": 12, "views": 300},
            "review_flags": {"hook_clear": True},
        }
    ],
}
MANIFEST: dict[str, Any] = {
    "schema_version": 1,
    "assets": [
        {
            "id": "dot",
            "path": "dot.png",
            "kind": "image",
            "alt_text": "A single white dot on its own, drawn for this example.",
            "rights_confirmed": True,
            "license": "owner",
            "provenance": {"created_by": "owner"},
            "targets": ["mastodon"],
        }
    ],
}
CUTLIST: dict[str, Any] = {
    "schema_version": "reachweaver.cut-list.v1",
    "source": {"file": "media/talk.mp4", "duration_s": 300, "width": 1920, "height": 1080},
    "segments": [
        {"id": "opening", "start_s": 0, "end_s": 40, "priority": 1, "label": "opening"},
        {"id": "proof", "start_s": 60, "end_s": 200, "priority": 2},
    ],
    "targets": [{"platform": "youtube_shorts"}, {"platform": "tiktok", "max_s": 60}],
}
RESULTS = [{"experiment_id": "e1", "dimension": "hook", "label": "inconclusive"}]
PILOT = (
    "date,arm,task,minutes_spent,posts_published,duplicates,unrecoverable_errors,interventions,"
    "factual_errors_found,clicks,impressions,downstream_conversions\n"
    "2026-09-01,manual,posting,30,2,0,0,1,0,10,,\n"
    "2026-09-09,manual,posting,25,2,0,0,0,0,12,,1\n"
    "2026-09-16,reachweaver,posting,9.5,2,0,0,0,0,11,200,\n"
    "2026-09-24,reachweaver,posting,8,2,1,0,0,0,,,\n"
    "someday,reachweaver,posting,8,2,1,0,0,0,,,\n"
)
TEXT = "In today's fast-paced world, this game changer unlocks value — and it is not just fast, it is fun. 日本語 🎉\n"


def log(post: str) -> str:
    """A worker log about a post, with a line that is none."""
    base = {"schema_version": 1, "run_id": "run-1", "dry_run": True, "ts": SEEN}
    lines: list[dict[str, Any]] = [
        {**base, "seq": 0, "event": "run_start", "live_requested": False},
        {
            **base,
            "seq": 1,
            "event": "post_skipped",
            "post_id": post,
            "account_id": "blue",
            "reason": "dry_run",
        },
        {**base, "seq": 2, "event": "run_end", "outcome": "ok", "exit_code": 0, "counts": {"skipped": 1}},
    ]
    return "not a line of the log\n" + "".join(json.dumps(line) + "\n" for line in lines)


def png() -> bytes:
    """One white pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack("!I", len(data)) + body + struct.pack("!I", zlib.crc32(body))

    head = chunk(b"IHDR", struct.pack("!IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\0\xff")) + chunk(b"IEND", b"")


def files(post: str) -> dict[str, bytes]:
    """All of them by name."""
    documents: dict[str, Any] = {
        "campaign.json": CAMPAIGN,
        "campaign-bad.json": {**CAMPAIGN, "objective": "fame", "evidence": [], "api_key": "x"},
        "brand.json": BRAND,
        "optout.json": OPTOUT,
        "preflight.json": PREFLIGHT,
        "preflight-bad.json": {**PREFLIGHT, "goal": "fame"},
        "match.json": MATCH,
        "coverage.json": COVERAGE,
        "discovery.json": DISCOVERY,
        "engagement.json": ENGAGEMENT,
        "engagement-bad.json": {**ENGAGEMENT, "items": []},
        "peers.json": PEERS,
        "audit.json": AUDIT,
        "manifest.json": MANIFEST,
        "manifest-bad.json": {**MANIFEST, "assets": [{"id": "gone", "path": "../gone.png", "kind": "image"}]},
        "cutlist.json": CUTLIST,
        "cutlist-bad.json": {**CUTLIST, "targets": [{"platform": "nowhere"}]},
        "results.json": RESULTS,
    }
    texts = {
        "pilot.csv": PILOT,
        "pilot-bad.csv": "date,arm\n2026-09-01,manual\n",
        "text.txt": TEXT,
        "not.json": "{",
        "worker.log": log(post),
    }
    found = {name: json.dumps(document, ensure_ascii=False).encode() for name, document in documents.items()}
    found |= {name: text.encode() for name, text in texts.items()}
    return found | {"dot.png": png(), "latin.txt": b"caf\xe9\n", "-dash.txt": b"A dash.\n"}
