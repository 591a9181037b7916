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
}

impl Call {
    /// A call. `operation` is the words of an error: "cannot ..".
    pub fn new(
        operation: &'static str,
        script: &'static Text,
        keys: impl Into<Vec<String>>,
        arguments: impl Into<Vec<String>>,
    ) -> Self {
        Self { operation, script, keys: keys.into(), arguments: arguments.into() }
    }

    /// Any of its keys: they are on one server.
    pub(crate) fn key(&self) -> &str {
        self.keys.first().map_or("", String::as_str)
    }

    /// The call by the hash of the script.
    pub(crate) fn by_hash(&self) -> Cmd {
        self.command("EVALSHA", self.script.hash())
    }

    /// The call with the text, which Redis keeps.
    pub(crate) fn with_text(&self) -> Cmd {
        self.command("EVAL", self.script.text())
    }

    fn command(&self, name: &str, script: &str) -> Cmd {
        cmd(name).arg(script).arg(self.keys.len()).arg(&self.keys).arg(&self.arguments).take()
    }
}
