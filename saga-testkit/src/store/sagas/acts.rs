//! What people did with the sagas of a tenant.

use saga_core::key::Tenant;
use saga_core::store::{AuditFilter, AuditRow, Changes, HistoryEntry, HistoryKind, Sagas};

use crate::check::{Outcome, ensure, ensure_eq};
use crate::fixture::{Begun, Bench, tenant};
use crate::harness::StoreHarness;

fn entry(begun: &Begun, kind: HistoryKind, detail: &str) -> HistoryEntry {
    HistoryEntry { saga: begun.id, step: None, kind, attempt: 0, detail: detail.to_owned() }
}

fn details(acts: &[AuditRow]) -> Vec<(&str, &str)> {
    acts.iter().map(|act| (act.key.as_str(), act.entry.detail.as_str())).collect()
}

pub(crate) async fn what_people_did_is_listed_the_latest_first<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let (one, other) = (bench.start("k-1").await?, bench.start("k-2").await?);
    let acme = bench.start_of(&tenant("acme"), "k-1").await?;
    let acts = [(&one, "first"), (&acme, "elsewhere"), (&other, "second"), (&one, "third")];
    for (begun, detail) in acts {
        let history = vec![entry(begun, HistoryKind::Stuck, "no act"), entry(begun, HistoryKind::Operator, detail)];
        bench.apply(Changes { history, ..Changes::default() }).await?;
    }
    let all = bench.store.audit_log(&AuditFilter::default()).await?;
    let expected = [("k-1", "third"), ("k-2", "second"), ("k-1", "first")];
    ensure_eq!(details(&all), expected, "what was done with the sagas of the default tenant");
    ensure!(all.is_sorted_by(|later, earlier| later.number > earlier.number), "numbers fall: {all:?}");
    ensure!(all.is_sorted_by(|later, earlier| later.at >= earlier.at), "times do not grow: {all:?}");
    ensure_eq!(all[0].entry.saga, one.id, "the saga of an act");
    let page = AuditFilter { limit: 1, before: Some(all[0].number), ..AuditFilter::default() };
    let page = bench.store.audit_log(&page).await?;
    ensure_eq!(details(&page), expected[1..2], "the page behind the first act");
    let of_acme = AuditFilter { tenant: tenant("acme"), ..AuditFilter::default() };
    let of_acme = bench.store.audit_log(&of_acme).await?;
    ensure_eq!(details(&of_acme), [("k-1", "elsewhere")], "those of another tenant");
    let bench = bench.reopen().await?;
    let again = bench.store.audit_log(&AuditFilter { tenant: Tenant::default(), ..AuditFilter::default() }).await?;
    ensure_eq!(again, all, "what the next process lists");
    Ok(())
}
