-- Broker-wide flags and the schema version row, one JSON value a key.

--@ table queen.system_state
CREATE TABLE IF NOT EXISTS queen.system_state (
    key        TEXT PRIMARY KEY,
    value      JSONB NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL DEFAULT now()
);
