//! One call of a script.

use std::borrow::Borrow;

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

    /// What runs, with its hash.
    pub(crate) fn script(&self) -> &'static Text {
        self.script
    }

    /// One command for calls of one script, by its hash.
    pub(crate) fn by_hash<C: Borrow<Self>>(script: &Text, calls: &[C]) -> Cmd {
        Self::command("EVALSHA", script.hash(), calls)
    }

    /// One command for calls of one script, with its text, which Redis keeps.
    pub(crate) fn with_text<C: Borrow<Self>>(script: &Text, calls: &[C]) -> Cmd {
        Self::command("EVAL", script.text(), calls)
    }

    fn command<C: Borrow<Self>>(name: &str, script: &str, calls: &[C]) -> Cmd {
        let calls = || calls.iter().map(Borrow::borrow);
        let keys = || calls().flat_map(|call| &call.keys);
        let mut command = cmd(name);
        command.arg(script).arg(keys().count());
        keys().for_each(|key| _ = command.arg(key));
        calls().flat_map(|call| &call.arguments).for_each(|argument| _ = command.arg(argument));
        command
    }
}
