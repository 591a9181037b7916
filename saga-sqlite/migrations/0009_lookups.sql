-- What operators did is found without reading the whole history.
CREATE INDEX saga_history_operator ON saga_history (id) WHERE kind = 'operator';
