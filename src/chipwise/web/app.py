"""The application: API and pages behind one guard, compressed and tagged, with workers that live as long as it does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware

from chipwise.web.api import on_http_error, on_refusal
from chipwise.web.api import routes as api_routes
from chipwise.web.jobs import Jobs
from chipwise.web.kept import Tagged
from chipwise.web.limits import RefusedError, ServerLimits
from chipwise.web.pages import as_page
from chipwise.web.pages import routes as page_routes
from chipwise.web.security import Access, Guard
from chipwise.web.submitted import Submitted


def create_app(access: Access | None = None, limits: ServerLimits | None = None) -> Starlette:
    """The web face as an ASGI application; by default for this machine only."""
    limits = limits or ServerLimits()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.jobs, app.state.submitted = Jobs(limits), Submitted(limits)
        await app.state.jobs.start()
        try:
            yield
        finally:
            await app.state.submitted.stop()
            await app.state.jobs.stop()

    guard = Middleware(Guard, access=access or Access(), target_bytes=limits.target_bytes)
    small = Middleware(GZipMiddleware, minimum_size=1_000, compresslevel=5)
    handlers = {RefusedError: as_page(on_refusal), HTTPException: as_page(on_http_error)}
    return Starlette(
        routes=[*api_routes(), *page_routes()],
        middleware=[guard, small, Middleware(Tagged)],
        exception_handlers=handlers,
        lifespan=lifespan,
    )
