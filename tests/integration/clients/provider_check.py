"""The released checker of providers (trustedrouter-provider-check), unmodified, against /v1: which of its checks pass, warn or fail.

Arguments: base URL with /v1, key, model. The catalog of prices that a provider publishes elsewhere is served here. Prints one JSON
object: `checks` (id to status) and `wrong`, what did not pass, with what was measured.
"""

import asyncio
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from tr_provider_check.checks import run_checks

ADDRESS = "https://provider.example"

CATALOG = {
    "object": "list",
    "contract_version": "2.0",
    "provider": {
        "id": "provider",
        "status_url": ADDRESS,
        "support_contact": ADDRESS,
        "incident_contact": ADDRESS,
        "regions": ["here"],
        "request_id_header": "X-Request-Id",
        "error_contract": {
            "rate_limit_status": 429,
            "overload_status": 503,
            "retry_after_header": "Retry-After",
            "account_quota_error_codes": [],
        },
    },
}


def row(model):
    """What the catalog says of a model."""
    return {
        "id": f"provider/{model}",
        "object": "model",
        "owned_by": "provider",
        "name": model,
        "type": "chat",
        "context_length": 128000,
        "max_output_tokens": 4096,
        "endpoints": ["chat/completions"],
        "input_modalities": ["text"],
        "output_modalities": ["text"],
        "capabilities": {
            "streaming": True,
            "tools": False,
            "structured_output": False,
            "reasoning": False,
            "prompt_caching": False,
        },
        "pricing": {
            "currency": "USD",
            "unit": "per_1m_tokens",
            "input": "1",
            "output": "2",
            "cached_input": None,
            "cache_write": None,
            "minimum_request": "0",
        },
        "lifecycle": {
            "status": "active",
            "deprecation_at": None,
            "retirement_at": None,
            "replacement_model_id": None,
        },
        "reliability": {
            "first_token_timeout_seconds": 60,
            "completion_timeout_seconds": 120,
            "stream_idle_timeout_seconds": 60,
            "capacity_scope": "global",
        },
    }


def catalog(model):
    """Serves the catalog; its address."""
    body = json.dumps({**CATALOG, "data": [row(model)]}).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}/catalog.json"


async def main(base, key, model):
    run = await run_checks(
        base_url=base,
        api_key=key or None,
        model=model,
        catalog_url=catalog(model),
        tier=4,
    )
    checks, wrong = {}, []
    for check in run.checks:
        one = check if isinstance(check, dict) else vars(check)
        checks[one["id"]] = one["status"]
        if one["status"] != "pass":
            wrong.append({"id": one["id"], "status": one["status"], "measured": one["measured"]})
    print(json.dumps({"checks": checks, "wrong": wrong}, default=str))


asyncio.run(main(*sys.argv[1:4]))
