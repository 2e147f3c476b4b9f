//! Which compression types to measure, and at which levels: the grammar of
//! `--codecs` and `--codec`.
//!
//! ```text
//!  list  = item *( "," item )            at most 64 after the ranges are expanded
//!  item  = name [ ":" level [ ".." level ] ]           both ends included
//!  name  = "gzip" | "snappy" | "lz4" | "zstd"
//! ```
//! Levels and defaults are those of Kafka's producer (`CompressionType.java`, KIP-390):
//!
//! | codec  | levels       | default |
//! |--------|--------------|---------|
//! | gzip   | 1..9         | 6       |
//! | snappy |              |         |
//! | lz4    | 1..17        | 9       |
//! | zstd   | -131072..22  | 3       |

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use logseg_core::Codec;

/// A compression type with a level.
///
/// The default level has one form only, so that `zstd:3` and `zstd` are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CodecSpec {
    codec: Codec,
    level: Option<i32>,
}

impl CodecSpec {
    /// `codec` at its default level.
    ///
    /// Errors: [`CodecSpecError::UnknownCodec`] for [`Codec::None`].
    pub fn new(codec: Codec) -> Result<Self, CodecSpecError> {
        match codec {
            Codec::None => Err(CodecSpecError::UnknownCodec(codec.name().to_owned())),
            _ => Ok(Self { codec, level: None }),
        }
    }

    /// `codec` at `level`.
    ///
    /// Errors: [`CodecSpecError::UnknownCodec`] for [`Codec::None`],
    /// [`CodecSpecError::NoLevels`], [`CodecSpecError::Level`].
    pub fn with_level(codec: Codec, level: i32) -> Result<Self, CodecSpecError> {
        let spec = Self::new(codec)?;
        let levels = levels(codec).ok_or(CodecSpecError::NoLevels(codec))?;
        if !levels.contains(&level) {
            return Err(CodecSpecError::Level { codec, level: level.to_string() });
        }
        let level = Some(level).filter(|_| default_level(codec) != Some(level));
        Ok(Self { level, ..spec })
    }

    /// The compression type, never [`Codec::None`].
    #[must_use]
    pub const fn codec(&self) -> Codec {
        self.codec
    }

    /// The level if it is not the default one.
    #[must_use]
    pub const fn level(&self) -> Option<i32> {
        self.level
    }

    /// The level that is used; `None` for snappy, which has none.
    #[must_use]
    pub fn effective_level(&self) -> Option<i32> {
        self.level.or(default_level(self.codec))
    }

    /// What reports call it: `zstd`, or `zstd:9` if the level is not the default.
    #[must_use]
    pub fn label(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for CodecSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.codec.name())?;
        self.level.map_or(Ok(()), |level| write!(f, ":{level}"))
    }
}

/// `name` or `name:level`.
impl FromStr for CodecSpec {
    type Err = CodecSpecError;

    fn from_str(item: &str) -> Result<Self, Self::Err> {
        let (codec, levels) = parse_item(item)?;
        match levels {
            None => Self::new(codec),
            Some((low, None)) => Self::with_level(codec, low),
            Some((_, Some(_))) => Err(CodecSpecError::Range(item.to_owned())),
        }
    }
}

/// Most entries that a list may have, ranges expanded.
pub const MAX_ENTRIES: usize = 64;

/// What `--codecs` takes: at least one, in the order given. Of an entry that is there
/// twice the first one stays.
///
/// Errors: whatever is wrong with the first bad item; [`CodecSpecError::TooMany`],
/// before a range is expanded.
pub fn parse_list(list: &str) -> Result<Vec<CodecSpec>, CodecSpecError> {
    let mut specs = Vec::new();
    let mut count = 0;
    for item in list.split(',') {
        let (codec, levels) = parse_item(item.trim())?;
        let levels = levels.map(|(low, high)| low..=high.unwrap_or(low));
        // Both ends are levels of the codec, so this is at most 131 095.
        count += levels.as_ref().map_or(1, |levels| levels.end().abs_diff(*levels.start()) + 1);
        if count > MAX_ENTRIES as u32 {
            return Err(CodecSpecError::TooMany);
        }
        let expanded = match levels {
            None => vec![CodecSpec::new(codec)],
            Some(levels) => levels.map(|level| CodecSpec::with_level(codec, level)).collect(),
        };
        for spec in expanded {
            let spec = spec?;
            if !specs.contains(&spec) {
                specs.push(spec);
            }
        }
    }
    Ok(specs)
}

/// Why a list of codecs cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CodecSpecError {
    /// Nothing between two commas, or nothing at all.
    Empty,
    /// No compression type of that name; also `none`, which compresses nothing.
    UnknownCodec(String),
    /// A level for a codec that has none.
    NoLevels(Codec),
    /// Not a level of this codec.
    Level {
        /// Which.
        codec: Codec,
        /// As given.
        level: String,
    },
    /// `low..high` where low is above high, or where one level is wanted.
    Range(String),
    /// More than [`MAX_ENTRIES`] entries.
    TooMany,
}

impl fmt::Display for CodecSpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a compression type is missing"),
            Self::UnknownCodec(name) => write!(
                f,
                "`{name}` is not a compression type to measure: gzip, snappy, lz4 and zstd are"
            ),
            Self::NoLevels(codec) => write!(f, "{codec} has no levels"),
            Self::Level { codec, level } => match levels(*codec) {
                Some(levels) => write!(
                    f,
                    "`{level}` is not a level of {codec}: they are {} to {}",
                    levels.start(),
                    levels.end()
                ),
                None => write!(f, "`{level}` is not a level of {codec}"),
            },
            Self::Range(item) => write!(f, "`{item}` is not a range of levels that fits here"),
            Self::TooMany => write!(f, "more than {MAX_ENTRIES} levels in all"),
        }
    }
}

impl std::error::Error for CodecSpecError {}

/// Name and levels of an item; a range has a second level, not below the first.
type Item = (Codec, Option<(i32, Option<i32>)>);

fn parse_item(item: &str) -> Result<Item, CodecSpecError> {
    let (name, given) = match item.split_once(':') {
        Some((name, given)) => (name, Some(given)),
        None => (item, None),
    };
    if name.is_empty() {
        return Err(CodecSpecError::Empty);
    }
    let codec = Codec::ALL
        .into_iter()
        .find(|codec| *codec != Codec::None && codec.name() == name)
        .ok_or_else(|| CodecSpecError::UnknownCodec(name.to_owned()))?;
    let Some(given) = given else { return Ok((codec, None)) };
    let levels = levels(codec).ok_or(CodecSpecError::NoLevels(codec))?;
    let level = |text: &str| {
        text.parse()
            .ok()
            .filter(|level| levels.contains(level))
            .ok_or_else(|| CodecSpecError::Level { codec, level: text.to_owned() })
    };
    match given.split_once("..") {
        None => Ok((codec, Some((level(given)?, None)))),
        Some((low, high)) => {
            let (low, high) = (level(low)?, level(high)?);
            if low > high {
                return Err(CodecSpecError::Range(item.to_owned()));
            }
            Ok((codec, Some((low, Some(high)))))
        }
    }
}

const fn default_level(codec: Codec) -> Option<i32> {
    match codec {
        Codec::None | Codec::Snappy => None,
        Codec::Gzip => Some(6),
        Codec::Lz4 => Some(9),
        Codec::Zstd => Some(3),
    }
}

const fn levels(codec: Codec) -> Option<RangeInclusive<i32>> {
    match codec {
        Codec::None | Codec::Snappy => None,
        Codec::Gzip => Some(1..=9),
        Codec::Lz4 => Some(1..=17),
        Codec::Zstd => Some(-131_072..=22),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(list: &str) -> String {
        match parse_list(list) {
            Ok(specs) => specs.iter().map(CodecSpec::label).collect::<Vec<_>>().join(","),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn lists() {
        for (list, expected) in [
            ("gzip,snappy,lz4,zstd", "gzip,snappy,lz4,zstd"),
            ("zstd", "zstd"),
            ("zstd:1..4,gzip:6,lz4", "zstd:1,zstd:2,zstd,zstd:4,gzip,lz4"),
            ("zstd:-2..1", "zstd:-2,zstd:-1,zstd:0,zstd:1"),
            ("zstd:-131072,zstd:22", "zstd:-131072,zstd:22"),
            ("lz4:17..17", "lz4:17"),
            ("lz4,lz4:9,lz4:8..10", "lz4,lz4:8,lz4:10"),
            ("lz4, gzip:1", "lz4,gzip:1"),
        ] {
            assert_eq!(labels(list), expected, "{list}");
        }
    }

    #[test]
    fn what_is_refused() {
        let names = "is not a compression type to measure: gzip, snappy, lz4 and zstd are";
        for (list, expected) in [
            ("", "a compression type is missing".to_owned()),
            ("gzip,", "a compression type is missing".to_owned()),
            (":3", "a compression type is missing".to_owned()),
            ("none", format!("`none` {names}")),
            ("GZIP", format!("`GZIP` {names}")),
            ("snappy:1", "snappy has no levels".to_owned()),
            ("gzip:0", "`0` is not a level of gzip: they are 1 to 9".to_owned()),
            ("gzip:", "`` is not a level of gzip: they are 1 to 9".to_owned()),
            ("gzip:1..", "`` is not a level of gzip: they are 1 to 9".to_owned()),
            ("gzip:1...3", "`.3` is not a level of gzip: they are 1 to 9".to_owned()),
            ("lz4:18", "`18` is not a level of lz4: they are 1 to 17".to_owned()),
            ("lz4:9x", "`9x` is not a level of lz4: they are 1 to 17".to_owned()),
            ("zstd:23", "`23` is not a level of zstd: they are -131072 to 22".to_owned()),
            ("zstd:9..1", "`zstd:9..1` is not a range of levels that fits here".to_owned()),
            ("zstd:-131072..22", "more than 64 levels in all".to_owned()),
            ("zstd:-41..22,gzip", "more than 64 levels in all".to_owned()),
        ] {
            assert_eq!(labels(list), expected, "{list}");
        }
        assert_eq!(parse_list("zstd:-41..22").map(|list| list.len()), Ok(64));
    }

    #[test]
    fn one_spec() {
        let spec: CodecSpec = "zstd:3".parse().unwrap();
        assert_eq!(
            (spec.label(), spec.level(), spec.effective_level()),
            ("zstd".into(), None, Some(3))
        );
        let spec: CodecSpec = "lz4:12".parse().unwrap();
        assert_eq!(
            (spec.label(), spec.level(), spec.effective_level()),
            ("lz4:12".into(), Some(12), Some(12))
        );
        let spec: CodecSpec = "snappy".parse().unwrap();
        assert_eq!((spec.label(), spec.effective_level()), ("snappy".into(), None));
        assert!("zstd:1..2".parse::<CodecSpec>().is_err());
        assert!(CodecSpec::new(Codec::None).is_err());
    }
}
