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

/// Where the holds are. Those in Redis are not in the journal, and may be lost by a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    InSql,
    InRedis,
}

pub(crate) fn judge(holds: Holds, capacities: &[(String, u64)], entries: &[Entry], answers: &[Answer]) {
    let complaints = complaints(holds, capacities, entries, answers);
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

fn complaints(holds: Holds, capacities: &[(String, u64)], entries: &[Entry], answers: &[Answer]) -> Vec<String> {
    let mut complaints = accounts(holds, capacities, entries);
    complaints.extend(promises(holds, entries, answers));
    complaints.extend(tokens(answers));
    complaints
}

/// Guarantees 1, 3, 4 and 5: the accounts of the resources.
fn accounts(holds: Holds, capacities: &[(String, u64)], entries: &[Entry]) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut accounts: BTreeMap<&str, Account> = BTreeMap::new();
    for entry in entries {
        let Some((held, confirmed)) = movement(holds, entry) else {
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
            // Redis gives the tokens out, and they come into the journal in the order of the confirmations.
            if holds == Holds::InSql && (entry.was.is_none() || is_late) {
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
fn movement(holds: Holds, entry: &Entry) -> Option<(i64, i64)> {
    if holds == Holds::InRedis {
        return match (entry.was.as_deref(), entry.state.as_str()) {
            (None, "confirmed") => Some((0, 1)),
            (None, "released") if entry.lines.is_empty() => Some((0, 0)),
            (Some("confirmed"), "returned") => Some((0, -1)),
            _ => None,
        };
    }
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
fn promises(holds: Holds, entries: &[Entry], answers: &[Answer]) -> Vec<String> {
    let facts: BTreeSet<(&str, &str, u64)> =
        entries.iter().map(|entry| (entry.key.as_str(), entry.state.as_str(), entry.token)).collect();
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.was.is_none()) {
        *first.entry(&entry.key).or_default() += 1;
    }
    let twice = first.iter().filter(|(_, count)| **count > 1);
    let mut complaints: Vec<String> = twice.map(|(key, count)| format!("{key} was made {count} times")).collect();
    for Answer { key, action, done, .. } in answers {
        let Some((state, token)) = done else { continue };
        let is_of_action = match *action {
            "reserve" | "extend" => state == "held",
            "confirm" => state == "confirmed",
            "release" => state == "released" || state == "expired" || state == "returned",
            _ => state == "returned",
        };
        let is_in_journal = facts.contains(&(key.as_str(), state.as_str(), *token));
        let is_only_in_redis = holds == Holds::InRedis && matches!(state.as_str(), "held" | "released" | "expired");
        // A hold that was over when it was released is written down as expired by the same transaction.
        if !is_of_action || !(is_in_journal || is_only_in_redis) {
            complaints
                .push(format!("{action} of {key} was answered with {state} under {token}, and is not in the journal"));
        }
    }
    complaints
}

/// Guarantee 4, as clients see it: a request that was asked after another one was answered has a higher token.
fn tokens(answers: &[Answer]) -> Vec<String> {
    let mut complaints = Vec::new();
    let held = |answer: &&Answer| answer.action == "reserve" && answer.done.is_some();
    let mut asked: Vec<_> = answers.iter().filter(held).collect();
    let mut answered = asked.clone();
    asked.sort_by_key(|answer| answer.between.0);
    answered.sort_by_key(|answer| answer.between.1);
    let mut answered = answered.into_iter().peekable();
    let mut highest: BTreeMap<&str, u64> = BTreeMap::new();
    let token_of = |answer: &Answer| answer.done.as_ref().map_or(0, |(_, token)| *token);
    for answer in asked {
        while let Some(earlier) = answered.next_if(|earlier| earlier.between.1 < answer.between.0) {
            for resource in &earlier.resources {
                let known = highest.entry(resource).or_default();
                *known = token_of(earlier).max(*known);
            }
        }
        let lower = answer.resources.iter().filter(|name| highest.get(name.as_str()) >= Some(&token_of(answer)));
        complaints.extend(lower.map(|name| format!("a token of {name} was given out before: {answer:?}")));
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
        complaints(Holds::InSql, &[("seat".to_owned(), 2)], &entries(rows), answers).len()
    }

    fn found_over_redis(rows: &[Row], answers: &[Answer]) -> usize {
        complaints(Holds::InRedis, &[("seat".to_owned(), 2)], &entries(rows), answers).len()
    }

    fn answer(action: &'static str, state: &str, token: u64, between: (u64, u64)) -> Answer {
        let resources = if action == "reserve" { vec!["seat".to_owned()] } else { Vec::new() };
        Answer { key: "a".to_owned(), action, done: Some((state.to_owned(), token)), resources, between }
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
    fn over_redis_lost_holds_are_no_complaint_and_oversold_confirmations_are() {
        let confirmed = |key, token, quantity| (key, None, "confirmed", None, token, quantity, 50);
        let returned = |key, token, quantity| (key, Some("confirmed"), "returned", Some(token), token, quantity, 60);
        let answers = [answer("reserve", "held", 7, (0, 1)), answer("confirm", "confirmed", 5, (2, 3))];
        let rows = [confirmed("a", 5, 1), confirmed("b", 4, 1), returned("a", 5, 1), returned("b", 4, 1)];
        assert_eq!(found_over_redis(&rows, &answers), 0);
        let oversold = [confirmed("a", 5, 2), confirmed("b", 4, 1), returned("a", 5, 2), returned("b", 4, 1)];
        assert!(found_over_redis(&oversold, &answers) >= 1);
        assert_eq!(found_over_redis(&[], &answers), 1, "the confirmation is not in the journal");
        let twice = [confirmed("a", 5, 1), returned("a", 5, 1), returned("a", 5, 1)];
        assert!(found_over_redis(&twice, &answers) >= 1);
    }

    #[test]
    fn tokens_grow_as_clients_see_it() {
        let reserve = |token, between| answer("reserve", "held", token, between);
        assert_eq!(tokens(&[reserve(2, (0, 3)), reserve(1, (1, 2)), reserve(3, (4, 5))]).len(), 0);
        assert_eq!(tokens(&[reserve(2, (0, 1)), reserve(2, (2, 3))]).len(), 1);
        assert_eq!(tokens(&[reserve(2, (0, 1)), reserve(1, (2, 3))]).len(), 1);
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
        let answer = |action, state, token| answer(action, state, token, (0, 1));
        assert_eq!(found(&[HELD, CONFIRMED, RETURNED], &[answer("confirm", "confirmed", 1)]), 0);
        assert_eq!(
            found(&[HELD, CONFIRMED, RETURNED], &[answer("confirm", "confirmed", 2), answer("confirm", "held", 1)]),
            2
        );
    }
}
