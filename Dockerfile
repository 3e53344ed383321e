# The service. Build: docker build -t toolcrib .   Run: docker compose up
# For bundles: docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined; see docs/guides/production.md.
FROM python:3.13-slim AS build
WORKDIR /src
RUN pip install --no-cache-dir uv
COPY pyproject.toml constraints.txt constraints-run.txt README.md LICENSE ./
COPY docs ./docs
COPY src ./src
# The guides that the service shows at /help become part of the package.
RUN uv venv /tmp/site \
 && uv pip install --python /tmp/site/bin/python --require-hashes -r constraints-run.txt \
 && uv pip install --python /tmp/site/bin/python --no-deps . \
 && /tmp/site/bin/sphinx-build -q -b html -d /tmp/doctrees docs src/toolcrib/surfaces/help
RUN uv venv /opt/toolcrib \
 && uv pip install --python /opt/toolcrib/bin/python --constraint constraints.txt '.[server,mongo,s3,mcp]'

FROM python:3.13-slim
RUN useradd --system --uid 10001 --create-home --home-dir /var/lib/toolcrib toolcrib
COPY --from=build /opt/toolcrib /opt/toolcrib
ENV PATH=/opt/toolcrib/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    TOOLCRIB_DATA_DIR=/var/lib/toolcrib \
    TOOLCRIB_HOST=0.0.0.0 \
    TOOLCRIB_LOG_FORMAT=json
USER toolcrib
VOLUME /var/lib/toolcrib
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=20s \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
ENTRYPOINT ["toolcrib"]
CMD ["serve"]
