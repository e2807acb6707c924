#!/usr/bin/env bash
# Run by the image of PostgreSQL when its volume is new: hands the passwords to roles.sql.
set -euo pipefail
psql --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" --set=ON_ERROR_STOP=1 \
  --set=password="$STORE_PASSWORD" --set=reader_password="$READER_PASSWORD" \
  --file="${ROLES:-/deploy/roles.sql}"
