use std::collections::BTreeSet;
use std::path::Path;

use saga_testkit::checker::{Ledger, Standing, Violation, check};
use serde_json::Value;

use super::books::Books;
use super::ledger::Facts;
use super::open_letters::OpenLetters;
use super::purges::Purges;
use super::remainder::Remainder;
use super::stored::Stored;
use crate::world::{Database, DiaryLine, Happened, Programs, finish};

/// What is judged by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Evidence<'a> {
    pub(crate) programs: &'a Programs,
    pub(crate) folder: &'a Path,
    pub(crate) databases: &'a [Database],
    pub(crate) book: &'a Path,
    pub(crate) keys: &'a [(u64, String)],
    pub(crate) diary: &'a [DiaryLine],
    pub(crate) repeats: u32,
    /// Whether what has ended is purged.
    pub(crate) purges: bool,
}

/// The result of the judgement.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    /// What the checker reports, each with the key of its order.
    pub(crate) violations: Vec<(Option<String>, Violation)>,
    /// The same without the effects that no guarantee rules out.
    pub(crate) beside_remainder: Vec<(Option<String>, Violation)>,
    pub(crate) remainder: Remainder,
    /// What `order-rig verify` finds: of whom, and what.
    pub(crate) findings: Vec<(String, String)>,
    /// `verify` could not do its work.
    pub(crate) verify_failed: Option<String>,
    pub(crate) letters: u64,
    pub(crate) completed: usize,
    pub(crate) compensated: usize,
    pub(crate) stuck: usize,
    pub(crate) others: usize,
    /// Orders that it was too late to start.
    pub(crate) late: usize,
    pub(crate) archived: u64,
    /// Starts of orders that were tombstones.
    pub(crate) tombstones: u64,
    pub(crate) purges: Purges,
    /// Dead letters that were open for a time.
    pub(crate) open_letters: OpenLetters,
    pub(crate) received: u64,
    pub(crate) retries: u64,
    pub(crate) held: u64,
    pub(crate) ledgers: Vec<Ledger>,
}

/// Reads all books, and judges them.
pub(crate) async fn judge(evidence: &Evidence<'_>) -> anyhow::Result<Judged> {
    let orders = &evidence.databases[0].url;
    let books = Books::read(orders, evidence.book).await?;
    let known: BTreeSet<&str> = evidence.keys.iter().map(|(_, key)| key.as_str()).collect();
    let stored = Stored::read(evidence.databases, &known).await?;
    let purges = if evidence.purges { Some(Purges::read(evidence.databases).await?) } else { None };
    let panics = panics(evidence.folder)?;
    let remainder = Remainder::of(&books);
    let facts = |books| Facts {
        keys: evidence.keys,
        books,
        stored: &stored,
        purges: purges.as_ref(),
        diary: evidence.diary,
        panics: &panics,
        repeats: evidence.repeats,
    };
    let ledgers = facts(&books).ledgers();
    let without = remainder.taken_out_of(&books);
    let (findings, verify_failed) = verify(evidence).await?;
    let count = |event: &str| books.outside.iter().filter(|line| line.event == event).count() as u64;
    // Where a process said that a file of orders has ended, it said so of each of them. Of another file some may not have begun.
    let answered = answered(evidence.diary);
    let is_late = |(wave, key): &&(u64, String)| !answered.contains(wave) && !stored.orders.contains_key(key);
    let late = if evidence.purges { evidence.keys.iter().filter(is_late).count() } else { 0 };
    let ended = [Standing::Completed, Standing::Compensated, Standing::Stuck].map(|standing| stored.count(standing));
    Ok(Judged {
        violations: violations(&ledgers),
        beside_remainder: violations(&facts(&without).ledgers()),
        findings,
        verify_failed,
        letters: stored.letters,
        completed: ended[0],
        compensated: ended[1],
        stuck: ended[2],
        others: evidence.keys.len() - ended.iter().sum::<usize>().min(evidence.keys.len()) - late,
        late,
        received: stored.received,
        archived: stored.archived,
        tombstones: tombstones(evidence.folder)?,
        retries: books.outside.iter().filter(|line| line.event == "called" && line.nth > 1).count() as u64,
        held: count("held"),
        remainder,
        ledgers,
        purges: purges.unwrap_or_default(),
        open_letters: OpenLetters::of(evidence.diary),
    })
}

/// The waves whose process said that each order has ended.
fn answered(diary: &[DiaryLine]) -> BTreeSet<u64> {
    let calls: BTreeSet<u64> = diary.iter().filter_map(|line| line.what.answered()).collect();
    let of = |line: &DiaryLine| match line.what {
        Happened::Started { call, wave } => calls.contains(&call).then_some(wave),
        _ => None,
    };
    diary.iter().filter_map(of).collect()
}

fn violations(ledgers: &[Ledger]) -> Vec<(Option<String>, Violation)> {
    let of = |ledger: &Ledger, violation: Violation| {
        let key = violation.saga.and_then(|saga| ledger.sagas.get(saga)).map(|plan| plan.key.clone());
        (key, violation)
    };
    ledgers.iter().flat_map(|ledger| check(ledger).into_iter().map(|violation| of(ledger, violation))).collect()
}

/// What the program's own audit says.
async fn verify(evidence: &Evidence<'_>) -> anyhow::Result<(Vec<(String, String)>, Option<String>)> {
    // It looks for the book in the folder that it is started in.
    let folder = evidence.book.parent().unwrap_or(evidence.folder);
    let stores = evidence.databases.iter().flat_map(|database| ["--store", &*database.url]);
    let args: Vec<&str> = ["verify", "--json"].into_iter().chain(stores).collect();
    let output = finish(evidence.programs.replica(folder, &args)).await?;
    let said = String::from_utf8_lossy(&output.stdout);
    let audit: Option<Value> = said.lines().last().and_then(|line| serde_json::from_str(line).ok());
    let findings = audit.as_ref().and_then(|audit| audit.get("findings")?.as_array());
    let Some(findings) = findings else {
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        return Ok((Vec::new(), Some(format!("verify ended with {}: {errors}", output.status))));
    };
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    let findings: Vec<_> = findings.iter().map(|it| (text(it, "subject"), text(it, "wrong"))).collect();
    let contradicts = findings.is_empty() != output.status.success();
    Ok((findings, contradicts.then(|| format!("verify ended with {}", output.status))))
}

/// The lines in which a replica says that it panicked.
fn panics(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut panics = said(folder)?;
    panics.retain(|line| line.contains("panicked at"));
    Ok(panics)
}

/// How many starts found only a tombstone, as the summaries of the replicas have it.
fn tombstones(folder: &Path) -> anyhow::Result<u64> {
    let of = |line: String| serde_json::from_str::<Value>(&line).ok()?.get("tombstones")?.as_u64();
    Ok(said(folder)?.into_iter().filter_map(of).sum())
}

/// What the replicas have said.
fn said(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut lines = Vec::new();
    for file in std::fs::read_dir(folder)? {
        let path = file?.path();
        if path.extension().is_some_and(|extension| extension == "log") && !path.ends_with("chaos.log") {
            let text = String::from_utf8_lossy(&std::fs::read(&path)?).into_owned();
            lines.extend(text.lines().map(str::to_owned));
        }
    }
    Ok(lines)
}
