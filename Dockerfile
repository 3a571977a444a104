# The first stage has the toolchains and builds the wheels; the second has only what they install. `.ci/image` runs the
# same steps where there is no container engine.
#
#   docker build -t triradix .                                        # or podman build, or buildah bud
#   docker run --rm triradix                                          # replays the built-in workload
#   docker run --rm -v "$PWD:/data:ro" triradix --trace /data/trace.jsonl
#   docker run --rm --entrypoint triradix triradix doctor

# Where no registry can be reached: `make image ARGS=--stand-in` makes two such images of what the machine has.
ARG RUST_IMAGE=rust:1.89-slim-bookworm
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

FROM ${RUST_IMAGE} AS builder
# Debian's Python 3.11 is that of the final image. Its packages have the versions of the release that the image names.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev make python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN make wheels PYTHONS=python3

FROM ${PYTHON_IMAGE}
# The version is that of the wheel of the Rust tree, which asks for exactly its own.
# hadolint ignore=DL3013
RUN --mount=type=bind,from=builder,source=/src/dist,target=/wheels \
    pip install --no-cache-dir --only-binary :all: --find-links /wheels /wheels/triradix_rust-*.whl \
    "triradix[rust,metrics]"
# The image holds no compiler, and what it holds is in order.
RUN ! command -v cc && ! command -v gcc && ! command -v cargo && triradix doctor --seconds 0.2
RUN useradd --create-home --uid 10001 triradix
USER 10001
WORKDIR /home/triradix
ENTRYPOINT ["triradix", "replay"]
