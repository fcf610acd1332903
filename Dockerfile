# The broker as an image: built with locked dependencies, run by a user without rights, nothing beside one binary.
#
#   docker build -t queen --build-arg REVISION=$(git rev-parse HEAD) .
#   docker run --read-only -p 127.0.0.1:6632:6632 -e PG_HOST=... -e PG_PASSWORD=... -v queen-buffers:/var/lib/queen/buffers queen
#
# Schema and statements are inside the binary, and so are the public TLS roots: no file is needed at run time.

FROM rust:1.95-slim-bookworm AS build
ARG REVISION=unknown
ENV QUEEN_REVISION=$REVISION
# What the allocator is built with.
RUN apt-get update && apt-get install -y --no-install-recommends make && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
# The caches outlive the layer, so the binary is moved out of them in the same step.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --locked --release --package queen-server \
    && install -D target/release/queen-server /out/queen-server

FROM debian:bookworm-slim
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Queen" \
      org.opencontainers.image.description="A partitioned message broker on PostgreSQL" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.revision=$REVISION
RUN groupadd --gid 65532 queen \
    && useradd --uid 65532 --gid 65532 --no-create-home --shell /usr/sbin/nologin queen \
    && install -d -o 65532 -g 65532 -m 0700 /var/lib/queen/buffers \
    && install -d /app/bin \
    && ln -s /usr/local/bin/queen-server /app/bin/queen
COPY --from=build /out/queen-server /usr/local/bin/queen-server

USER 65532:65532
# The spool, for pushes that arrive while the database is away. One broker, one volume, never shared.
VOLUME /var/lib/queen/buffers
EXPOSE 6632
STOPSIGNAL SIGTERM

# Liveness, not health: an orchestrator may kill what is unhealthy, and a database that is away is no reason for that.
HEALTHCHECK --interval=10s --timeout=4s --start-period=30s --retries=3 CMD ["/usr/local/bin/queen-server", "healthcheck"]

ENTRYPOINT ["/usr/local/bin/queen-server"]
