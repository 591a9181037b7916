use std::fmt;

/// By how many records the mark goes on at a time, so that it is written once for so many.
pub(crate) const STEP: i64 = 4096;
/// What the text begins with, so that another form can be told from this one.
const VERSION: &str = "1";

/// What is committed with an offset, as its metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Records below this offset may have been handed out. It is committed before they are.
    pub(crate) handed_out: i64,
    /// How many partitions the topic had when the group first received from it. Later ones are read from their beginning.
    pub(crate) partitions: i32,
}

impl Mark {
    /// Reads metadata. Nothing where it is empty, or not of this transport but of a tool that moved the offsets.
    pub(crate) fn parse(metadata: &str) -> Option<Self> {
        let mut parts = metadata.split(' ');
        let (version, handed_out, partitions) = (parts.next()?, parts.next()?, parts.next()?);
        if version != VERSION || parts.next().is_some() {
            return None;
        }
        Some(Self { handed_out: handed_out.parse().ok()?, partitions: partitions.parse().ok()? })
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{VERSION} {} {}", self.handed_out, self.partitions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_back() {
        let mark = Mark { handed_out: 8_192, partitions: 12 };
        assert_eq!(Mark::parse(&mark.to_string()), Some(mark));
    }

    #[test]
    fn metadata_of_others_is_no_mark() {
        for metadata in ["", "1", "1 2", "1 2 3 4", "2 8192 12", "1 x 12", "1 8192 y", "written by a tool"] {
            assert_eq!(Mark::parse(metadata), None, "{metadata}");
        }
    }
}
