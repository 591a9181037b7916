//! What `docs/cdc.md` says, so that it is this which is tested.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

const PAGE: &str = include_str!("../../../docs/cdc.md");
/// What stands for a password on the page.
const PASSWORD: &str = "'..'";
/// The file with the password in it, on the page.
const SECRETS: &str = "/etc/debezium/secrets";
/// What the row of a header begins with in the table of the parts of a message.
const HEADER: &str = "| header `";

/// The only block of this language on the page.
fn block(language: &str) -> &'static str {
    let begin = format!("```{language}\n");
    let mut blocks = PAGE.split(&begin).skip(1);
    let block = blocks.next().unwrap().split_once("```").unwrap().0;
    assert!(blocks.next().is_none(), "the page has two blocks of {language}");
    block
}

/// The statements that make the role, and those for each database.
pub(crate) fn statements(password: &str) -> (Vec<String>, Vec<String>) {
    let all = block("sql").split_inclusive(';').map(str::trim).filter(|statement| !statement.is_empty());
    let all = all.map(|statement| statement.replace(PASSWORD, &format!("'{password}'")));
    all.partition(|statement| statement.starts_with("CREATE ROLE"))
}

/// The connector of the page, for another server.
pub(crate) fn connector(port: u16, database: &str, secrets: &Path) -> Value {
    let mut connector: Value = serde_json::from_str(block("json")).unwrap();
    let password = connector["config"]["database.password"].as_str().unwrap();
    assert!(password.contains(SECRETS), "{password}");
    let password = password.replace(SECRETS, secrets.to_str().unwrap());
    let replaced = [
        ("database.hostname", "127.0.0.1".to_owned()),
        ("database.port", port.to_string()),
        ("database.dbname", database.to_owned()),
        ("database.password", password),
    ];
    for (name, value) in replaced {
        let before = connector["config"].as_object_mut().unwrap().insert(name.to_owned(), value.into());
        assert!(before.is_some(), "the page does not set {name}");
    }
    connector
}

/// The connector under other names, to run beside another one in the same worker and at the same server.
pub(crate) fn renamed(mut connector: Value, name: &str) -> Value {
    connector["name"] = name.into();
    for property in ["slot.name", "topic.prefix"] {
        assert!(connector["config"][property].is_string(), "the page does not set {property}");
        connector["config"][property] = name.into();
    }
    connector
}

/// The headers that the table lists.
pub(crate) fn headers() -> BTreeSet<&'static str> {
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix(HEADER));
    rows.map(|row| row.split_once('`').unwrap().0).collect()
}
