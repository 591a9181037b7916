//! Steps whose panics come at awkward moments.

use std::fmt;

use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::{
    Batch, BatchResults, Resolved, Saga, StepContext, StepError, saga_compensation, saga_resolution, saga_step,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// When a step panics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Trick {
    Never,
    /// At once.
    Panics,
    /// At once, and what the panic carries panics when it is dropped.
    PanicsWithBomb,
    /// When the call is dropped at its time limit.
    PanicsWhenDropped,
    /// When its error is turned into text.
    PanicsInDisplay,
    /// When its error is dropped.
    PanicsWithError,
    /// When somebody asks for what is behind its error.
    PanicsInSource,
    /// When its output is encoded.
    PanicsInOutput,
    /// When its output is dropped.
    PanicsWithOutput,
}

impl Trick {
    pub(crate) const ALL: [Self; 8] = [
        Self::Panics,
        Self::PanicsWithBomb,
        Self::PanicsWhenDropped,
        Self::PanicsInDisplay,
        Self::PanicsWithError,
        Self::PanicsInSource,
        Self::PanicsInOutput,
        Self::PanicsWithOutput,
    ];

    pub(crate) async fn play(self) -> Result<Loot, StepError> {
        match self {
            Self::Never | Self::PanicsInOutput | Self::PanicsWithOutput => {}
            Self::Panics => panic!("at once"),
            Self::PanicsWithBomb => std::panic::panic_any(Bomb),
            Self::PanicsWhenDropped => {
                let _bomb = Bomb;
                std::future::pending::<()>().await;
            }
            Self::PanicsInDisplay | Self::PanicsWithError | Self::PanicsInSource => {
                let bomb = (self == Self::PanicsWithError).then(|| Bomb);
                return Err(StepError::retry(Nasty { trick: self, _bomb: bomb }));
            }
        }
        Ok(Loot { trick: self, _bomb: (self == Self::PanicsWithOutput).then(|| Bomb) })
    }
}

/// It panics when it is dropped.
#[derive(Debug)]
pub(crate) struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        // A second panic while the first one unwinds would end the process, whatever the runtime does.
        assert!(std::thread::panicking(), "the bomb went off");
    }
}

#[derive(Debug)]
struct Nasty {
    trick: Trick,
    _bomb: Option<Bomb>,
}

impl fmt::Display for Nasty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        assert_ne!(self.trick, Trick::PanicsInDisplay, "no text");
        f.write_str("nasty")
    }
}

impl std::error::Error for Nasty {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        assert_ne!(self.trick, Trick::PanicsInSource, "no source");
        None
    }
}

/// What the steps return.
#[derive(Debug)]
pub(crate) struct Loot {
    trick: Trick,
    _bomb: Option<Bomb>,
}

impl Serialize for Loot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        assert_ne!(self.trick, Trick::PanicsInOutput, "not to be written");
        self.trick.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Loot {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Trick::deserialize(deserializer).map(|trick| Self { trick, _bomb: None })
    }
}

#[saga_step(compensate = bring_back, timeout = "100ms", retry(attempts = 2, base = "1ms"), on_exhausted = "compensate")]
async fn fetch(_ctx: &StepContext, trick: Trick) -> Result<Loot, StepError> {
    trick.play().await
}

#[saga_compensation]
async fn bring_back(_ctx: &StepContext, _trick: Trick, _loot: Option<Loot>) -> Result<(), StepError> {
    Ok(())
}

/// A call from outside that is asked for before it is made again, where asking for it does the trick.
#[saga_step(compensate = bring_back, resolve = ask, timeout = "100ms", retry(attempts = 2, base = "1ms"), on_exhausted = "compensate")]
async fn fetch_once(_ctx: &StepContext, trick: Trick) -> Result<Loot, StepError> {
    if trick == Trick::Never { trick.play().await } else { Err(StepError::retry("no answer")) }
}

#[saga_resolution(timeout = "100ms", retry(attempts = 2, base = "1ms"))]
async fn ask(_ctx: &StepContext, trick: Trick) -> Result<Resolved<Loot>, StepError> {
    trick.play().await.map(Resolved::Done)
}

#[saga_step(compensate = unwrite, timeout = "100ms", retry(attempts = 2, base = "1ms"), on_exhausted = "compensate")]
async fn write(conn: &mut MemoryConn, ctx: &StepContext, trick: Trick) -> Result<Loot, StepError> {
    conn.put(ctx.key(), "written")?;
    trick.play().await
}

#[saga_compensation]
async fn unwrite(_conn: &mut MemoryConn, _trick: Trick, _loot: Loot) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(no_compensation, timeout = "100ms", retry(attempts = 2, base = "1ms"), on_exhausted = "compensate")]
async fn write_many(_conn: &mut MemoryConn, batch: Batch<Trick>) -> Result<BatchResults<Loot>, StepError> {
    let mut loot = Vec::new();
    for trick in &batch {
        loot.push(trick.play().await?);
    }
    let mut loot = loot.into_iter();
    Ok(batch.map_each(|_| loot.next().ok_or_else(|| StepError::retry("no loot"))))
}

#[saga_step(compensate = undo_outside, timeout = "100ms", retry(attempts = 2, base = "1ms"), on_exhausted = "compensate")]
async fn outside(_ctx: &StepContext, _trick: Trick) -> Result<u32, StepError> {
    Ok(1)
}

#[saga_compensation(timeout = "100ms", retry(attempts = 2, base = "1ms"))]
async fn undo_outside(_ctx: &StepContext, trick: Trick, _one: u32) -> Result<(), StepError> {
    trick.play().await.map(drop)
}

#[saga_step(compensate = undo_inside, retry(attempts = 2, base = "1ms"), on_exhausted = "compensate")]
async fn inside(_conn: &mut MemoryConn, _trick: Trick) -> Result<u32, StepError> {
    Ok(1)
}

#[saga_compensation(timeout = "100ms", retry(attempts = 2, base = "1ms"))]
async fn undo_inside(_conn: &mut MemoryConn, trick: Trick, _one: u32) -> Result<(), StepError> {
    trick.play().await.map(drop)
}

#[saga_step(no_compensation)]
async fn reject(_conn: &mut MemoryConn, trick: Trick) -> Result<(), StepError> {
    if trick == Trick::Never { Ok(()) } else { Err(StepError::reject("that is all")) }
}

/// One saga for each place where the trick may be played.
pub(crate) fn sagas() -> Vec<Saga<MemoryStore, Trick>> {
    let named = |name| Saga::named(name).input::<Trick>();
    vec![
        named("call").step::<fetch>().build().unwrap(),
        named("resolve").step::<fetch_once>().build().unwrap(),
        named("transaction").step::<write>().build().unwrap(),
        named("batch").step::<write_many>().build().unwrap(),
        named("undo-call").step::<outside>().step::<reject>().build().unwrap(),
        named("undo-transaction").step::<inside>().step::<reject>().build().unwrap(),
    ]
}
