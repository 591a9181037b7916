//! Sagas are kept as JSON lines before they are purged.
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flate2::read::GzDecoder;
use saga_archive::JsonLines;
use saga_core::memory::MemoryStore;
use saga_core::store::SagaFilter;
use saga_core::{Retention, Runtime, Saga, StepError, saga_step};
use saga_testkit::VirtualTime;
use serde_json::Value;

const DAY: Duration = Duration::from_hours(24);

#[saga_step(no_compensation)]
async fn greet(name: String) -> Result<String, StepError> {
    Ok(format!("Hello\n{name}"))
}

fn objects(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { objects(&path) } else { vec![path] }).collect()
}

fn lines(folder: &Path) -> Vec<Value> {
    let mut lines = Vec::new();
    for path in objects(folder) {
        let mut text = String::new();
        GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
        lines.extend(text.lines().map(|line| serde_json::from_str(line).unwrap()));
    }
    lines
}

#[tokio::test]
async fn each_purged_saga_is_a_line_and_what_cannot_be_written_is_not_purged() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("archive");
    std::fs::create_dir(&archive).unwrap();
    let time = VirtualTime::new();
    let store = MemoryStore::with_environment(time.environment());
    let greeting = Saga::named("greeting").input().retention(Retention::days(1)).step::<greet>().build().unwrap();
    let objects_of = JsonLines::in_folder(&archive).unwrap().prefix("sagas");
    let runtime = Runtime::builder(store.clone()).environment(time.environment()).saga(&greeting);
    let runtime = runtime.archive(objects_of).start().await.unwrap();
    for number in 0..300 {
        let running = runtime.start(&greeting, format!("g-{number}"), format!("guest {number}")).await.unwrap();
        running.outcome().await.unwrap();
    }
    // A file stands where the folder should be.
    std::fs::write(archive.join("sagas"), b"in the way").unwrap();
    time.advance(2 * DAY).await;
    let admin = runtime.admin();
    assert_eq!(admin.query().list(SagaFilter { limit: 1_000, ..SagaFilter::default() }).await.unwrap().len(), 300);

    std::fs::remove_file(archive.join("sagas")).unwrap();
    time.advance(DAY).await;
    assert!(admin.query().list(SagaFilter::default()).await.unwrap().is_empty());
    let mut kept = lines(&archive);
    kept.sort_by_key(|line| line["id"].as_i64());
    assert_eq!(kept.len(), 300);
    assert_eq!(kept[7]["input"], "guest 7");
    assert_eq!(kept[7]["records"][0]["output"], "Hello\nguest 7");
    assert!(objects(&archive)[0].to_string_lossy().contains("/sagas/2025-01/"), "{:?}", objects(&archive));
    runtime.shutdown().await;
}
