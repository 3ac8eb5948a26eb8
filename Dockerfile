# The page and the HTTP API as a demonstration: no token, nothing kept, no user but its own.
#
#   docker build -t chipwise .
#   docker run --rm --read-only --cap-drop ALL --security-opt no-new-privileges --memory 2g -p 8321:8321 chipwise
#
# For a server of one's own that asks for a token: docker run ... chipwise web --no-open --host 0.0.0.0
FROM python:3.13-slim AS build
WORKDIR /src
COPY requirements.lock ./
RUN python -m venv /venv && /venv/bin/pip install --no-cache-dir --require-hashes --requirement requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY src src
# a link in src leads to it
COPY docs/accuracy.md docs/accuracy.md
RUN /venv/bin/pip install --no-cache-dir --no-deps . && /venv/bin/pip uninstall --yes pip

FROM python:3.13-slim
COPY --from=build /venv /venv
ENV PATH=/venv/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 CHIPWISE_DATA_DIR=/nonexistent
USER 10001:10001
EXPOSE 8321
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8321/healthz', timeout=3)"]
ENTRYPOINT ["chipwise"]
CMD ["web", "--demo", "--no-open", "--host", "0.0.0.0", "--port", "8321"]
