//! One call of a script.

use redis::{Cmd, cmd};

use super::texts::Text;

/// A script with its keys, all of one slot, and its arguments.
#[derive(Debug)]
pub struct Call {
    /// What is to be done, for errors.
    pub(crate) operation: &'static str,
    script: &'static Text,
    keys: Vec<String>,
    arguments: Vec<String>,
    takes_run_id: bool,
}

impl Call {
    /// A call. `operation` is the words of an error: "cannot ..".
    pub fn new(
        operation: &'static str,
        script: &'static Text,
        keys: impl Into<Vec<String>>,
        arguments: impl Into<Vec<String>>,
    ) -> Self {
        Self { operation, script, keys: keys.into(), arguments: arguments.into(), takes_run_id: false }
    }

    /// Its last argument is the `run_id` of the server, or nothing if the connection does not know it.
    #[must_use]
    pub fn with_run_id(self) -> Self {
        Self { takes_run_id: true, ..self }
    }

    /// Any of its keys: they are on one server.
    pub(crate) fn key(&self) -> &str {
        self.keys.first().map_or("", String::as_str)
    }

    /// The call by the hash of the script.
    pub(crate) fn by_hash(&self, run_id: &str) -> Cmd {
        self.command("EVALSHA", self.script.hash(), run_id)
    }

    /// The call with the text, which Redis keeps.
    pub(crate) fn with_text(&self, run_id: &str) -> Cmd {
        self.command("EVAL", self.script.text(), run_id)
    }

    fn command(&self, name: &str, script: &str, run_id: &str) -> Cmd {
        let mut command = cmd(name);
        command.arg(script).arg(self.keys.len()).arg(&self.keys).arg(&self.arguments);
        if self.takes_run_id {
            command.arg(run_id);
        }
        command
    }
}
