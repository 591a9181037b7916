//! How long what is sent may be.

use super::settings::Settings;

/// What an undo may have besides the input and the output of its step.
const UNDO_FRAME_BYTES: usize = 64;

impl Settings {
    /// How long the payload of an undo may be: it carries the input and the output of a step.
    pub(crate) fn undo_bytes_max(&self) -> usize {
        self.payload_bytes_max.saturating_mul(2).saturating_add(UNDO_FRAME_BYTES)
    }

    /// The contradiction between the longest undo and the longest payload that the transport takes.
    pub(crate) fn undo_problem(&self, transport_bytes_max: usize, transport: &str) -> Option<String> {
        let needed = self.undo_bytes_max();
        let fitting = transport_bytes_max.saturating_sub(UNDO_FRAME_BYTES) / 2;
        (needed > transport_bytes_max).then(|| {
            format!(
                "payload_bytes_max is {}, so an undo, which carries an input and an output, may have {needed} bytes, and the \
                 transport `{transport}` takes payloads of up to {transport_bytes_max}; make payload_bytes_max at most \
                 {fitting}, or let the transport take at least {needed} bytes",
                self.payload_bytes_max
            )
        })
    }
}
