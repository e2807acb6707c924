# The program of this repository as an image: `docker build --tag threefold .`
FROM python:3.13-slim

# Bytes of Python are made once, here; output is not held back.
ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1

WORKDIR /build
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip install '.[chat,documents,postgres,redact,s3,serve]' && rm -rf /build

# Nothing is kept in the container: the record is in PostgreSQL, bytes are in the object store.
RUN useradd --system --uid 10001 --create-home --home-dir /home/threefold threefold
WORKDIR /home/threefold
USER threefold

ENTRYPOINT ["threefold"]
CMD ["--help"]
