use std::process::Output;

use serde_json::Value;

/// The result of a run of the program.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).expect("text"),
            err: String::from_utf8(output.stderr).expect("text"),
        }
    }

    /// The JSON object on the last line of standard output.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let last = self.out.lines().last().unwrap_or_else(|| panic!("nothing was printed\n{self}"));
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}\n{self}"))
    }

    /// It could not do what was asked and says so in one sentence on one line.
    #[track_caller]
    pub(crate) fn is_unusable(&self, sentence: &str) {
        assert_eq!(self.code, 2, "{self}");
        let line = self.err.lines().last().unwrap_or_default();
        assert!(line.starts_with("order-rig: ") && line.contains(sentence), "expected {sentence:?} in\n{self}");
        assert!(!self.err.contains("panicked"), "{self}");
    }
}

impl std::fmt::Display for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "exit code {}\n--- stdout\n{}\n--- stderr\n{}", self.code, self.out, self.err)
    }
}

/// A number of the JSON object.
#[track_caller]
pub(crate) fn number(json: &Value, field: &str) -> u64 {
    json[field].as_u64().unwrap_or_else(|| panic!("{field} in {json}"))
}
