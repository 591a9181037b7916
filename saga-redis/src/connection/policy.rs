//! Whether a server keeps what it is given.

use redis::{Cmd, Value, cmd};

const FIELD: &str = "maxmemory_policy:";

/// The command whose answer has the policy. It works where `CONFIG` is forbidden.
pub(super) fn ask_for_policy() -> Cmd {
    let mut command = cmd("INFO");
    command.arg("memory");
    command
}

/// Says what is wrong if one of the servers may forget locks for lack of memory.
pub(super) fn check_policy(said: &Value) -> Result<(), String> {
    let mut policies = Vec::new();
    collect(said, &mut policies);
    if policies.is_empty() {
        return Err(format!("the answer to INFO memory has no {FIELD}"));
    }
    match policies.into_iter().find(|policy| policy != "noeviction") {
        None => Ok(()),
        Some(policy) => Err(format!(
            "its maxmemory-policy is {policy}, so it may forget locks for lack of memory; set it to noeviction, or use another \
             Redis for locks"
        )),
    }
}

/// A cluster answers with a map from its nodes.
fn collect(said: &Value, policies: &mut Vec<String>) {
    let mut read = |text: &str| {
        let lines = text.lines().filter_map(|line| line.strip_prefix(FIELD));
        policies.extend(lines.map(|policy| policy.trim().to_owned()));
    };
    match said {
        Value::BulkString(bytes) => read(&String::from_utf8_lossy(bytes)),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => read(text),
        Value::Array(values) => values.iter().for_each(|value| collect(value, policies)),
        Value::Map(pairs) => pairs.iter().for_each(|(_, value)| collect(value, policies)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(policy: &str) -> Value {
        Value::BulkString(format!("# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:{policy}\r\n").into_bytes())
    }

    #[test]
    fn one_server_that_evicts_is_refused() {
        assert_eq!(check_policy(&memory("noeviction")), Ok(()));
        assert!(check_policy(&memory("allkeys-lru")).unwrap_err().contains("is allkeys-lru"));
        let node = |policy| (Value::SimpleString("node".into()), memory(policy));
        assert_eq!(check_policy(&Value::Map(vec![node("noeviction"), node("noeviction")])), Ok(()));
        assert!(check_policy(&Value::Map(vec![node("noeviction"), node("volatile-ttl")])).is_err());
        assert!(check_policy(&Value::Nil).unwrap_err().contains("no maxmemory_policy"));
    }
}
