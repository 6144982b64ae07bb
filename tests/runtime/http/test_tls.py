"""HTTPS between all callers and services, and renewed certificates."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from reverie.agent.gateway.http_client import GatewayConnection, GatewayUnavailable
from reverie.agent.hooks.command import connect_gateway
from reverie.cli.app.gateway_client import GatewayClient
from reverie.client import AsyncReverie
from reverie.contracts import reverie_pb2 as pb
from reverie.contracts.reverie_pb2_grpc import ReverieStub
from reverie.domain.core.errors import Misconfigured, Unavailable
from reverie.embedded.ports import find_free_port
from reverie.embedded.probe import is_service_ready
from reverie.embedded.tls.certificates import collect_host_names, ensure_certificate
from reverie.runtime.http.tls import load_certificate
from reverie.runtime.settings.settings import Settings
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from tests.support.stack import running_stack


def _write(cert: Path, key: Path, name: str) -> None:
    """A certificate for this machine that signs itself."""
    secret = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    alternative = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder().subject_name(who).issuer_name(who)
        .public_key(secret.public_key()).serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=1)).not_valid_after(now + timedelta(days=1))
        .add_extension(alternative, False).sign(secret, hashes.SHA256())
    )  # fmt: skip
    cert.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key.write_bytes(secret.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ))  # fmt: skip


async def test_every_interface_and_caller_uses_tls_with_the_authority_of_the_home_folder(
    database: DatabaseUrls, nats_url: str, tmp_path: Path
) -> None:
    files, port = (
        ensure_certificate(tmp_path / "tls", collect_host_names("127.0.0.1")),
        find_free_port(),
    )
    tls = {"tls_cert": files.cert, "tls_key": files.key, "ca_file": files.ca}
    async with running_stack(
        database, nats_url, model_home(), grpc_enabled=True, grpc_port=port, **tls
    ) as stack:
        assert {url.partition("://")[0] for url in stack.urls.values()} == {"https"}
        ports = [urlsplit(url).port or 0 for url in stack.urls.values()]
        assert all([await asyncio.to_thread(is_service_ready, one, True) for one in ports])
        # REST, passed on to another service by its own TLS.
        kept = await stack.post("/v1/remember", {"content": "The mole keeps the ferry's bell."})
        for url in stack.urls.values():
            with pytest.raises(aiohttp.ClientError):
                await stack.http.get(f"http{url[5:]}/health")
        async with AsyncReverie(stack.url, stack.key, ca=files.ca) as client:
            assert (await client.get_memory(kept["id"])).content.startswith("The mole")
        async with AsyncReverie(stack.url, stack.key, max_attempts=1) as client:
            with pytest.raises(Unavailable):
                await client.get_memory(kept["id"])
        # gRPC and MCP, whose calls come back to REST.
        trust = grpc.ssl_channel_credentials(files.ca.read_bytes())
        async with grpc.aio.secure_channel(f"localhost:{port}", trust) as channel:
            asked = pb.RecallRequest(query="who keeps the bell")
            who = (("authorization", f"Bearer {stack.key}"),)
            found = await ReverieStub(channel).Recall(asked, metadata=who, timeout=20)
            assert [one.id for one in found.memories] == [kept["id"]]
        asks = {"name": "recall", "arguments": {"query": "who keeps the bell"}}
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asks}
        accepts = {"Accept": "application/json, text/event-stream"}
        reply = await stack.call("POST", "/mcp", call, headers=accepts)
        assert "ferry's bell" in str(reply.body)
        # What runs beside an agent: the command line and the hooks.
        path = f"/v1/memories/{kept['id']}"
        for ca in (files.ca, None):
            desk = GatewayClient(stack.url, stack.key, 10, None, str(ca or ""))
            hook = GatewayConnection(stack.url, stack.key, 10, str(ca or ""))
            for ask, away in ((desk.request, Unavailable), (hook.request, GatewayUnavailable)):
                if ca is None:
                    with pytest.raises(away):
                        await asyncio.to_thread(ask, "GET", path)
                else:
                    assert (await asyncio.to_thread(ask, "GET", path))["id"] == kept["id"]
        # A hook and a command of that home folder find its authority by themselves.
        told = {"REVERIE_HOME": str(tmp_path), "REVERIE_API_KEY": stack.key}
        at = connect_gateway({**told, "REVERIE_GATEWAY_URL": stack.url}, 10)
        assert at is not None
        assert (await asyncio.to_thread(at.request, "GET", path))["id"] == kept["id"]
        assert Settings(home=tmp_path).trusted_ca_file == files.ca


def test_renewed_certificates_are_loaded_and_broken_ones_are_not(tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    _write(cert, key, "first")
    held = load_certificate(cert, key)
    assert held is not None
    assert not held.reload_if_changed()
    _write(cert, key, "second")
    assert held.reload_if_changed()
    cert.write_text("no certificate")
    assert not held.reload_if_changed()
    with pytest.raises(Misconfigured, match="for `reverie up`"):
        load_certificate(None, None, "self-signed")
    for given in ((cert, None), (None, key), (tmp_path / "none.pem", key)):
        with pytest.raises(Misconfigured, match="tls_cert"):
            load_certificate(*given)
