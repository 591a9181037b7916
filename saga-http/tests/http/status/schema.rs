//! What the routes answer is what OpenAPI says of it.

use std::collections::BTreeMap;

use saga_core::memory::MemoryStore;
use saga_core::store::{DeadLetterReason, DeadLetters as _};
use serde_json::{Map, Value};

use crate::status::dead_letters::letter;
use crate::status::fixture::{Shop, get, routes};

/// The answers to a request of this path: which of them there is, as OpenAPI has it.
struct Described(Value);

impl Described {
    fn schema(&self, path: &str, status: &str) -> Value {
        let content = &self.0["paths"][path]["get"]["responses"][status]["content"];
        let (_, media) = content.as_object().unwrap().iter().next().unwrap();
        media["schema"].clone()
    }

    fn resolved<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let Some(name) = schema["$ref"].as_str() else { return schema };
        self.0.pointer(name.strip_prefix('#').unwrap()).unwrap()
    }

    /// The properties of an object, with those of what it contains as its own, and those that it must have.
    fn properties<'a>(
        &'a self,
        schema: &'a Value,
        found: &mut BTreeMap<&'a str, &'a Value>,
        required: &mut Vec<&'a str>,
    ) {
        let schema = self.resolved(schema);
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.properties(part, found, required);
        }
        found.extend(schema["properties"].as_object().into_iter().flatten().map(|(name, of)| (name.as_str(), of)));
        required.extend(schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str));
    }

    fn check(&self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        let schema = self.resolved(schema);
        let choices = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array());
        if let Some(choices) = choices {
            let tried: Vec<_> = choices.iter().map(|choice| self.check(choice, value, at)).collect();
            let is_one = tried.iter().any(Result::is_ok);
            return if is_one { Ok(()) } else { Err(format!("{at}: {tried:?}")) };
        }
        check_type(schema, value, at)?;
        if let Some(values) = schema["enum"].as_array().filter(|values| !values.contains(value)) {
            return Err(format!("{at}: {value} is none of {values:?}"));
        }
        match value {
            Value::Array(entries) => entries.iter().try_for_each(|entry| self.check(&schema["items"], entry, at)),
            Value::Object(object) => self.check_object(schema, object, at),
            _ => Ok(()),
        }
    }

    fn check_object(&self, schema: &Value, object: &Map<String, Value>, at: &str) -> Result<(), String> {
        let (mut known, mut required) = (BTreeMap::new(), Vec::new());
        self.properties(schema, &mut known, &mut required);
        if known.is_empty() {
            return Ok(());
        }
        if let Some(missing) = required.iter().find(|name| !object.contains_key(**name)) {
            return Err(format!("{at}: `{missing}` is missing"));
        }
        object.iter().try_for_each(|(name, value)| {
            let schema = known.get(name.as_str()).ok_or_else(|| format!("{at}: `{name}` is not described"))?;
            self.check(schema, value, &format!("{at}.{name}"))
        })
    }
}

fn check_type(schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(some) => some.iter().filter_map(Value::as_str).collect(),
        _ => return Ok(()),
    };
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{at}: the type {other}"),
    };
    if types.into_iter().any(is) { Ok(()) } else { Err(format!("{at}: {value} is no {}", schema["type"])) }
}

#[tokio::test(start_paused = true)]
async fn each_answer_is_as_it_is_described() {
    let described = Described(serde_json::from_str(include_str!("../../../openapi.json")).unwrap());
    let shop = Shop::<MemoryStore>::new().await;
    shop.ended("ada-1", 3).await;
    shop.ended("ada-2", 101).await;
    shop.gate.open(2);
    shop.start("ada-3", 0).await.outcome().await.unwrap();
    shop.start("ada-4", 1).await;
    let admin = shop.runtime.admin().actor("ann");
    admin.control("ada-4").pause("is the address right?").await.unwrap();
    shop.store.add_dead_letters(vec![letter(1, DeadLetterReason::Unreadable)]).await.unwrap();
    let app = routes(shop.runtime.admin()).dead_letters(|_, _| true).into_router();
    for (path, of, status) in [
        ("/sagas/ada-1", "/sagas/{key}", "200"),
        ("/sagas/ada-2", "/sagas/{key}", "200"),
        ("/sagas/ada-3", "/sagas/{key}", "200"),
        ("/sagas/ada-4", "/sagas/{key}", "200"),
        ("/sagas/ada-9", "/sagas/{key}", "404"),
        ("/sagas/ada-9/events", "/sagas/{key}/events", "404"),
        ("/sagas/ada-9?x=1", "/sagas/{key}", "400"),
        ("/sagas", "/sagas", "200"),
        ("/sagas?limit=2", "/sagas", "200"),
        ("/dead-letters", "/dead-letters", "200"),
        ("/dead-letters/1000001", "/dead-letters/{id}", "200"),
    ] {
        let answer = get(&app, path, &[]).await;
        assert_eq!(answer.status.as_str(), status, "{path}");
        let checked = described.check(&described.schema(of, status), &answer.json(), path);
        assert_eq!(checked, Ok(()));
    }
    assert_eq!(described.0["openapi"], "3.1.0");
    shop.gate.open(2);
    shop.runtime.shutdown().await;
}
