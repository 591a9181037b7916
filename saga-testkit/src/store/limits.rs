//! Large, odd and many values.

use saga_core::key::Key;
use saga_core::store::{
    Changes, KEY_BYTES_MAX, RecordedOutcome, Records, STEP_NAME_BYTES_MAX, Sagas, Started, Status, StepId, Store,
    TENANT_BYTES_MAX,
};

use crate::check::{Outcome, ensure, ensure_eq};
use crate::fixture::{Begun, Bench, Play, tenant};
use crate::harness::StoreHarness;

const LARGE_BYTES: usize = 1 << 20;

/// Bytes of every value, zero among them.
fn large() -> Vec<u8> {
    (0..LARGE_BYTES).map(|index| (index % 256) as u8).collect()
}

pub(crate) async fn large_and_binary_values_are_kept<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let mut saga = bench.new_saga(&tenant(""), "k-1").await?;
    saga.input = large();
    saga.state = large();
    saga.digest = [255; 32];
    let begun = Begun::of(&saga, saga.commands[0].id);
    bench.start_new(saga).await?;
    let mut done = begun.done(1);
    done.records[0].output = Some(large());
    done.messages = vec![begun.message("o-1", u64::from(u32::MAX) + 1)];
    done.messages[0].payload = large();
    bench.apply(done).await?;
    let bench = bench.reopen().await?;
    ensure!(bench.saga(&begun).await?.input == large(), "a large input is not as it was");
    let records = bench.store.records_of(&begun.tenant, &begun.key).await?;
    ensure!(records[0].output == Some(large()), "a large output is not as it was");
    let sent = bench.outbox().await?;
    ensure!(sent[0].payload == large(), "a large payload is not as it was");
    ensure_eq!(sent[0].position, u64::from(u32::MAX) + 1, "a high position");
    Ok(())
}

pub(crate) async fn empty_is_not_absent<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let mut record = begun.record("empty", RecordedOutcome::Done);
    record.output = Some(Vec::new());
    let mut absent = begun.record("absent", RecordedOutcome::Done);
    absent.output = None;
    bench.apply(Changes { records: vec![record, absent], ..Changes::default() }).await?;
    for (step, expected) in [("empty", Some(Vec::new())), ("absent", None)] {
        let record = bench.store.record_of(&begun.tenant, &begun.key, &StepId::doing(step)).await?;
        ensure_eq!(record.map(|record| record.output), Some(expected), "the output that is {step}");
    }
    Ok(())
}

pub(crate) async fn the_longest_names_fit<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    // Every character that a key may have, and what SQL and its patterns could take for their own.
    let odd = String::from("!#") + r#"$%&'()*+,-./09:;<=?@AZ[\]^_`az{|}~"'--%_"#;
    let long = "k".repeat(KEY_BYTES_MAX);
    let whose = "t".repeat(TENANT_BYTES_MAX);
    let mut begun = Vec::new();
    for key in [&odd, &long] {
        begun.push(bench.start_of(&tenant(&whose), key).await?);
    }
    for begun in &begun {
        ensure_eq!(bench.saga(begun).await?.id, begun.id, "the saga of key {}", begun.key);
        bench.apply(begun.done(1)).await?;
    }
    Ok(())
}

pub(crate) async fn keys_differ_by_case<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let lower = bench.start("k-a").await?;
    let upper = bench.start("K-A").await?;
    ensure_eq!(bench.saga(&lower).await?.id, lower.id, "the saga of the lower key");
    ensure_eq!(bench.saga(&upper).await?.id, upper.id, "the saga of the upper key");
    let one = bench.start_of(&tenant("acme"), "k").await?;
    let two = bench.start_of(&tenant("ACME"), "k").await?;
    ensure!(one.id != two.id, "two tenants that differ by case are one");
    Ok(())
}

pub(crate) async fn one_call_carries_many_rows<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    const MANY: usize = 1200;
    let mut sagas = Vec::new();
    for number in 0..MANY {
        sagas.push(bench.new_saga(&tenant(""), &format!("k-{number}")).await?);
    }
    let begun: Vec<Begun> = sagas.iter().map(|saga| Begun::of(saga, saga.commands[0].id)).collect();
    let answers = bench.store.start(sagas).await?;
    let new = answers.iter().filter(|answer| matches!(answer, Started::New)).count();
    ensure_eq!(new, MANY, "the sagas of one start");
    let claimed = bench.claim(bench.lease().await?, MANY).await?;
    ensure_eq!((claimed.work.len(), claimed.sagas.len()), (MANY, MANY), "the rows of one claim");
    let mut ids: Vec<_> = begun.iter().map(|begun| begun.id).collect();
    ids.push(begun[0].id);
    ensure_eq!(bench.store.sagas_by_id(&ids[..MANY]).await?.len(), MANY, "the sagas of many ids");
    let held = begun.iter().map(|begun| {
        let work = claimed.work.iter().find(|work| work.saga == begun.id).map_or(begun.work, |work| work.work);
        begun.with_work(work).done(1)
    });
    let applied = bench.store.record(held.collect()).await?;
    ensure_eq!(applied.iter().filter(|applied| applied.is_ok()).count(), MANY, "the changes of one call");
    Ok(())
}

pub(crate) async fn a_step_transaction_carries_a_full_batch<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let count = bench.store.capabilities().batch_max;
    ensure!(count >= 1, "a store takes at least one claim at a time");
    let last = i64::try_from(count - 1)?;
    let mut begun = Vec::new();
    for number in 0..count {
        begun.push(bench.start(&format!("k-{number}")).await?);
    }
    let claims = begun.iter().map(Begun::claim).collect();
    let plays = (0..=last).map(|number| Play::keep(&format!("row-{number}"), number)).collect();
    let mut changes: Vec<Changes> = begun.iter().map(|begun| begun.done(1)).collect();
    changes[count - 1].saga = Some(begun[count - 1].advance(1, Status::Completed));
    let script = bench.script(plays, changes);
    let seen = script.seen();
    bench.store.transact(claims, Box::new(script)).await?;
    ensure_eq!(seen().granted, vec![true; count], "the claims");
    ensure_eq!(bench.business(&format!("row-{last}")).await, Some(last), "what the last handler wrote");
    ensure_eq!(bench.saga(&begun[count - 1]).await?.status, Status::Completed, "the last saga");
    Ok(())
}

pub(crate) async fn keys_of_hosted_steps_are_kept<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let longest = format!("{}>{}", "k".repeat(KEY_BYTES_MAX), "s".repeat(STEP_NAME_BYTES_MAX));
    let own = bench.start_of(&tenant("acme"), &"k".repeat(KEY_BYTES_MAX)).await?;
    let mut saga = bench.new_saga(&tenant("acme"), "k-1").await?;
    saga.key = Key::from_stored(&longest)?;
    for command in &mut saga.commands {
        command.key = saga.key.clone();
    }
    let hosted = Begun::of(&saga, saga.commands[0].id);
    bench.start_new(saga).await?;
    bench.apply(hosted.done(1)).await?;
    let bench = bench.reopen().await?;
    ensure_eq!(bench.saga(&hosted).await?.key, hosted.key, "the key of a hosted step");
    ensure_eq!(bench.store.records_of(&hosted.tenant, &hosted.key).await?.len(), 1, "its records");
    ensure_eq!(bench.saga(&own).await?.version, 1, "the saga of the key in front");
    Ok(())
}
