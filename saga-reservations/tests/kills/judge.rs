//! The judge: it computes again what each resource had at each moment, from the journal and from what clients were told. It
//! shares no code with the crate.

use std::collections::{BTreeMap, BTreeSet};

use crate::clients::Answer;
use crate::journal::Entry;

/// What is taken of a resource.
#[derive(Debug, Default)]
struct Account {
    held: i64,
    confirmed: i64,
    highest_token: u64,
    /// The transaction that changed it last.
    tx: u64,
}

impl Account {
    fn complaint(&self, name: &str, capacities: &[(String, u64)]) -> Option<String> {
        let capacity = capacities.iter().find(|(known, _)| known == name).map_or(0, |(_, capacity)| *capacity);
        let is_right = self.held >= 0 && self.confirmed >= 0 && self.held + self.confirmed <= capacity.cast_signed();
        (!is_right).then(|| format!("{name} of {capacity} is {self:?}"))
    }
}

pub(crate) fn judge(capacities: &[(String, u64)], entries: &[Entry], answers: &[Answer]) {
    let complaints = complaints(capacities, entries, answers);
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

fn complaints(capacities: &[(String, u64)], entries: &[Entry], answers: &[Answer]) -> Vec<String> {
    let mut complaints = accounts(capacities, entries);
    complaints.extend(promises(entries, answers));
    complaints
}

/// Guarantees 1, 3, 4 and 5: the accounts of the resources.
fn accounts(capacities: &[(String, u64)], entries: &[Entry]) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut accounts: BTreeMap<&str, Account> = BTreeMap::new();
    for entry in entries {
        let Some((held, confirmed)) = movement(entry) else {
            complaints.push(format!("no such change: {entry:?}"));
            continue;
        };
        let is_late = entry.was_token.is_some_and(|was| was != entry.token);
        if entry.was.as_deref() == Some("held")
            && entry.state == "confirmed"
            && !is_late
            && entry.at >= entry.expires_at
        {
            complaints.push(format!("confirmed late: {entry:?}"));
        }
        for line in &entry.lines {
            let account = accounts.entry(&line.resource).or_default();
            // What others see is what a transaction leaves; it writes its changes one after the other.
            if account.tx != entry.tx {
                complaints.extend(account.complaint(&line.resource, capacities));
                account.tx = entry.tx;
            }
            let quantity = i64::try_from(line.quantity).unwrap();
            account.held += held * quantity;
            account.confirmed += confirmed * quantity;
            if entry.was.is_none() || is_late {
                if entry.token <= account.highest_token {
                    complaints.push(format!("the token does not grow: {account:?}, {entry:?}"));
                }
                account.highest_token = entry.token;
            }
        }
    }
    complaints.extend(accounts.iter().filter_map(|(name, account)| account.complaint(name, capacities)));
    let left = accounts.iter().filter(|(_, account)| (account.held, account.confirmed) != (0, 0));
    complaints.extend(left.map(|(name, account)| format!("at the end {name} is {account:?}")));
    complaints
}

/// What a change adds to what is held and to what is confirmed, for each unit.
fn movement(entry: &Entry) -> Option<(i64, i64)> {
    match (entry.was.as_deref(), entry.state.as_str()) {
        (None, "held") => Some((1, 0)),
        // A release without a reservation, and an extension.
        (None, "released") if entry.lines.is_empty() => Some((0, 0)),
        (Some("held"), "held") if entry.was_token == Some(entry.token) => Some((0, 0)),
        (Some("held"), "confirmed") => Some((-1, 1)),
        (Some("held"), "released" | "expired") => Some((-1, 0)),
        (Some("expired"), "confirmed") if entry.was_token < Some(entry.token) => Some((0, 1)),
        (Some("confirmed"), "returned") => Some((0, -1)),
        _ => None,
    }
}

/// Guarantees 2 and 6: what clients were told is in the journal.
fn promises(entries: &[Entry], answers: &[Answer]) -> Vec<String> {
    let facts: BTreeSet<(&str, &str, u64)> =
        entries.iter().map(|entry| (entry.key.as_str(), entry.state.as_str(), entry.token)).collect();
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.was.is_none()) {
        *first.entry(&entry.key).or_default() += 1;
    }
    let twice = first.iter().filter(|(_, count)| **count > 1);
    let mut complaints: Vec<String> = twice.map(|(key, count)| format!("{key} was made {count} times")).collect();
    for Answer { key, action, done } in answers {
        let Some((state, token)) = done else { continue };
        let is_of_action = match *action {
            "reserve" | "extend" => state == "held",
            "confirm" => state == "confirmed",
            "release" => state == "released" || state == "expired" || state == "returned",
            _ => state == "returned",
        };
        // A hold that was over when it was released is written down as expired by the same transaction.
        if !is_of_action || !facts.contains(&(key.as_str(), state.as_str(), *token)) {
            complaints
                .push(format!("{action} of {key} was answered with {state} under {token}, and is not in the journal"));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Key, state before and now, token before and now, quantity, when.
    type Row = (&'static str, Option<&'static str>, &'static str, Option<u64>, u64, u64, i64);

    fn entries(rows: &[Row]) -> Vec<Entry> {
        let entry = |(tx, (key, was, state, was_token, token, quantity, at)): (usize, &Row)| {
            let lines = if *quantity == 0 { json!([]) } else { json!([{"resource": "seat", "quantity": quantity}]) };
            serde_json::from_value(json!({
                "key": key, "lines": lines, "was": was, "state": state, "was_token": was_token, "token": token,
                "expires_at": 100, "at": at, "tx": tx + 1,
            }))
        };
        rows.iter().enumerate().map(|row| entry(row).unwrap()).collect()
    }

    fn found(rows: &[Row], answers: &[Answer]) -> usize {
        complaints(&[("seat".to_owned(), 2)], &entries(rows), answers).len()
    }

    const HELD: Row = ("a", None, "held", None, 1, 2, 1);
    const CONFIRMED: Row = ("a", Some("held"), "confirmed", Some(1), 1, 2, 50);
    const RETURNED: Row = ("a", Some("confirmed"), "returned", Some(1), 1, 2, 60);

    #[test]
    fn a_right_journal_has_no_complaints() {
        assert_eq!(found(&[HELD, CONFIRMED, RETURNED, ("b", None, "released", None, 0, 0, 70)], &[]), 0);
        let expired = ("a", Some("held"), "expired", Some(1), 1, 2, 100);
        let late = ("a", Some("expired"), "confirmed", Some(1), 2, 2, 120);
        let returned = ("a", Some("confirmed"), "returned", Some(2), 2, 2, 130);
        assert_eq!(found(&[HELD, expired, late, returned], &[]), 0);
    }

    #[test]
    fn what_is_wrong_is_found() {
        // Oversold, and nothing left at the end; each is a complaint.
        assert_eq!(
            found(
                &[
                    HELD,
                    ("b", None, "held", None, 2, 1, 2),
                    ("b", Some("held"), "released", Some(2), 2, 1, 3),
                    CONFIRMED,
                    RETURNED
                ],
                &[]
            ),
            1
        );
        assert_eq!(found(&[HELD], &[]), 1);
        // Given back twice.
        assert!(found(&[HELD, CONFIRMED, RETURNED, RETURNED], &[]) >= 1);
        assert!(found(&[HELD, CONFIRMED, RETURNED, ("a", Some("returned"), "returned", Some(1), 1, 2, 61)], &[]) >= 1);
        // A token that does not grow.
        assert_eq!(
            found(
                &[
                    HELD,
                    CONFIRMED,
                    RETURNED,
                    ("b", None, "held", None, 1, 1, 70),
                    ("b", Some("held"), "released", Some(1), 1, 1, 71)
                ],
                &[]
            ),
            1
        );
        // A confirmation that was late.
        assert_eq!(found(&[HELD, ("a", Some("held"), "confirmed", Some(1), 1, 2, 100), RETURNED], &[]), 1);
        // A key that was made twice.
        assert!(
            found(
                &[
                    HELD,
                    CONFIRMED,
                    RETURNED,
                    ("a", None, "held", None, 2, 1, 70),
                    ("a", Some("held"), "released", Some(2), 2, 1, 71)
                ],
                &[]
            ) >= 1
        );
        // An answer that is not in the journal.
        let answer =
            |action, state: &str, token| Answer { key: "a".to_owned(), action, done: Some((state.to_owned(), token)) };
        assert_eq!(found(&[HELD, CONFIRMED, RETURNED], &[answer("confirm", "confirmed", 1)]), 0);
        assert_eq!(
            found(&[HELD, CONFIRMED, RETURNED], &[answer("confirm", "confirmed", 2), answer("confirm", "held", 1)]),
            2
        );
    }
}
