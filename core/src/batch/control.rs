//! Control records: transaction markers, and what KRaft writes.
//!
//! ```text
//!  key    version i16, type i16
//!  value  0 ABORT, 1 COMMIT   version i16, coordinator epoch i32
//!         2 LEADER_CHANGE     version i16, leader i32, voters, granting voters, tags
//!         3 SNAPSHOT_HEADER   version i16, last contained log timestamp i64, tags
//!         4 SNAPSHOT_FOOTER   version i16, tags
//!         5 KRAFT_VERSION     version i16, kraft.version i16, tags
//!         6 KRAFT_VOTERS      version i16, voters with directory and endpoints, tags
//! ```
//! Types 2 to 6 are "flexible": arrays and strings carry an unsigned varint of
//! length + 1, and each structure ends in tagged fields. Source:
//! `ControlRecordType.java`, `EndTransactionMarker.java`, and the message
//! definitions of Apache Kafka.

use crate::cursor::Cursor;
use crate::error::ControlFault;
use crate::varint::decode_unsigned;

/// What a control record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ControlType {
    /// A transaction ends, and its records are void.
    Abort,
    /// A transaction ends, and its records count.
    Commit,
    /// A KRaft leader was elected.
    LeaderChange,
    /// Start of a KRaft snapshot.
    SnapshotHeader,
    /// End of a KRaft snapshot.
    SnapshotFooter,
    /// Version of the KRaft protocol.
    KraftVersion,
    /// The voters of the KRaft quorum.
    KraftVoters,
    /// A type of a later Kafka.
    Unknown(i16),
}

impl ControlType {
    /// From the number in the key.
    #[must_use]
    pub const fn from_id(id: i16) -> Self {
        match id {
            0 => Self::Abort,
            1 => Self::Commit,
            2 => Self::LeaderChange,
            3 => Self::SnapshotHeader,
            4 => Self::SnapshotFooter,
            5 => Self::KraftVersion,
            6 => Self::KraftVoters,
            other => Self::Unknown(other),
        }
    }

    /// The number in the key.
    #[must_use]
    pub const fn id(self) -> i16 {
        match self {
            Self::Abort => 0,
            Self::Commit => 1,
            Self::LeaderChange => 2,
            Self::SnapshotHeader => 3,
            Self::SnapshotFooter => 4,
            Self::KraftVersion => 5,
            Self::KraftVoters => 6,
            Self::Unknown(id) => id,
        }
    }

    /// Kafka's name, `UNKNOWN` for types of a later one.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Abort => "ABORT",
            Self::Commit => "COMMIT",
            Self::LeaderChange => "LEADER_CHANGE",
            Self::SnapshotHeader => "SNAPSHOT_HEADER",
            Self::SnapshotFooter => "SNAPSHOT_FOOTER",
            Self::KraftVersion => "KRAFT_VERSION",
            Self::KraftVoters => "KRAFT_VOTERS",
            Self::Unknown(_) => "UNKNOWN",
        }
    }
}

/// A control record.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Control<'a> {
    /// Version of the key.
    pub key_version: i16,
    /// What it is.
    pub control_type: ControlType,
    /// What it says.
    pub value: ControlValue<'a>,
}

/// Value of a control record.
#[derive(Debug, Clone, Copy)]
pub enum ControlValue<'a> {
    /// ABORT or COMMIT.
    EndTransaction {
        /// Version of the value.
        version: i16,
        /// Of the transaction coordinator.
        coordinator_epoch: i32,
    },
    /// LEADER_CHANGE.
    LeaderChange {
        /// First field of the value.
        version: i16,
        /// Node id.
        leader_id: i32,
        /// All voters.
        voters: Voters<'a>,
        /// Those that voted for the leader.
        granting_voters: Voters<'a>,
    },
    /// SNAPSHOT_HEADER.
    SnapshotHeader {
        /// First field of the value.
        version: i16,
        /// Epoch milliseconds.
        last_contained_log_timestamp: i64,
    },
    /// SNAPSHOT_FOOTER.
    SnapshotFooter {
        /// First field of the value.
        version: i16,
    },
    /// KRAFT_VERSION.
    KraftVersion {
        /// First field of the value.
        version: i16,
        /// `kraft.version`.
        kraft_version: i16,
    },
    /// KRAFT_VOTERS.
    KraftVoters {
        /// First field of the value.
        version: i16,
        /// All voters.
        voters: Voters<'a>,
    },
    /// Value of an unknown type, not looked at.
    Opaque(Option<&'a [u8]>),
}

impl<'a> Control<'a> {
    /// Reads key and value of a record in a control batch.
    pub fn parse(key: Option<&'a [u8]>, value: Option<&'a [u8]>) -> Result<Self, ControlFault> {
        let key = key.ok_or(ControlFault::NullKey)?;
        let mut cursor = Cursor::new(key);
        let short = ControlFault::ShortKey(u32::try_from(key.len()).unwrap_or(u32::MAX));
        let key_version = cursor.i16().ok_or(short)?;
        let control_type = ControlType::from_id(cursor.i16().ok_or(short)?);
        if key_version < 0 {
            return Err(ControlFault::KeyVersion(key_version));
        }
        let value = ControlValue::parse(control_type, value)?;
        Ok(Self { key_version, control_type, value })
    }
}

impl<'a> ControlValue<'a> {
    fn parse(kind: ControlType, value: Option<&'a [u8]>) -> Result<Self, ControlFault> {
        if let ControlType::Unknown(_) = kind {
            return Ok(Self::Opaque(value));
        }
        let bytes = value.ok_or(ControlFault::NullValue)?;
        let short = ControlFault::ShortValue(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        let mut cursor = Cursor::new(bytes);
        let version = cursor.i16().ok_or(short)?;
        if version < 0 {
            return Err(ControlFault::ValueVersion(version));
        }
        Self::fields(kind, version, &mut cursor).ok_or(short)
    }

    fn fields(kind: ControlType, version: i16, cursor: &mut Cursor<'a>) -> Option<Self> {
        let value = match kind {
            // Longer markers are tolerated; they are not flexible.
            ControlType::Abort | ControlType::Commit => {
                return Some(Self::EndTransaction { version, coordinator_epoch: cursor.i32()? });
            }
            ControlType::LeaderChange => {
                let leader_id = cursor.i32()?;
                // Version 1 added the directory id.
                let form = if version >= 1 { VoterForm::Directory } else { VoterForm::Id };
                Self::LeaderChange {
                    version,
                    leader_id,
                    voters: Voters::parse(cursor, form)?,
                    granting_voters: Voters::parse(cursor, form)?,
                }
            }
            ControlType::SnapshotHeader => {
                Self::SnapshotHeader { version, last_contained_log_timestamp: cursor.i64()? }
            }
            ControlType::SnapshotFooter => Self::SnapshotFooter { version },
            ControlType::KraftVersion => {
                Self::KraftVersion { version, kraft_version: cursor.i16()? }
            }
            ControlType::KraftVoters => {
                Self::KraftVoters { version, voters: Voters::parse(cursor, VoterForm::Full)? }
            }
            ControlType::Unknown(_) => return None,
        };
        skip_tags(cursor)?;
        Some(value)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VoterForm {
    Id,
    Directory,
    Full,
}

/// Voters of a control record. They were checked when the record was parsed.
#[derive(Debug, Clone, Copy)]
pub struct Voters<'a> {
    cursor: Cursor<'a>,
    left: u32,
    form: VoterForm,
}

impl<'a> Voters<'a> {
    fn parse(cursor: &mut Cursor<'a>, form: VoterForm) -> Option<Self> {
        let left = compact_len(cursor)?;
        let voters = Self { cursor: *cursor, left, form };
        for _ in 0..left {
            Voter::parse(cursor, form)?;
        }
        Some(voters)
    }
}

impl<'a> Iterator for Voters<'a> {
    type Item = Voter<'a>;

    fn next(&mut self) -> Option<Voter<'a>> {
        self.left = self.left.checked_sub(1)?;
        Voter::parse(&mut self.cursor, self.form)
    }
}

/// One voter of the KRaft quorum.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Voter<'a> {
    /// Node id.
    pub id: i32,
    /// Of its log, where the record has it.
    pub directory_id: Option<[u8; 16]>,
    /// Where it listens (KRAFT_VOTERS only).
    pub endpoints: Option<Endpoints<'a>>,
    /// Least and most `kraft.version` (KRAFT_VOTERS only).
    pub kraft_versions: Option<(i16, i16)>,
}

impl<'a> Voter<'a> {
    fn parse(cursor: &mut Cursor<'a>, form: VoterForm) -> Option<Self> {
        let mut voter =
            Self { id: cursor.i32()?, directory_id: None, endpoints: None, kraft_versions: None };
        if form != VoterForm::Id {
            voter.directory_id = Some(*cursor.take(16)?.first_chunk()?);
        }
        if form == VoterForm::Full {
            voter.endpoints = Some(Endpoints::parse(cursor)?);
            voter.kraft_versions = Some((cursor.i16()?, cursor.i16()?));
            skip_tags(cursor)?;
        }
        skip_tags(cursor)?;
        Some(voter)
    }
}

/// Endpoints of a voter. They were checked when the record was parsed.
#[derive(Debug, Clone, Copy)]
pub struct Endpoints<'a> {
    cursor: Cursor<'a>,
    left: u32,
}

impl<'a> Endpoints<'a> {
    fn parse(cursor: &mut Cursor<'a>) -> Option<Self> {
        let left = compact_len(cursor)?;
        let endpoints = Self { cursor: *cursor, left };
        for _ in 0..left {
            Endpoint::parse(cursor)?;
        }
        Some(endpoints)
    }
}

impl<'a> Iterator for Endpoints<'a> {
    type Item = Endpoint<'a>;

    fn next(&mut self) -> Option<Endpoint<'a>> {
        self.left = self.left.checked_sub(1)?;
        Endpoint::parse(&mut self.cursor)
    }
}

/// Where a voter listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Endpoint<'a> {
    /// Of the listener, UTF-8 by convention.
    pub name: &'a [u8],
    /// UTF-8 by convention.
    pub host: &'a [u8],
    /// Port.
    pub port: u16,
}

impl<'a> Endpoint<'a> {
    fn parse(cursor: &mut Cursor<'a>) -> Option<Self> {
        let (name, host) = (compact_string(cursor)?, compact_string(cursor)?);
        let port = cursor.i16()?.cast_unsigned();
        skip_tags(cursor)?;
        Some(Self { name, host, port })
    }
}

fn unsigned(cursor: &mut Cursor<'_>) -> Option<u32> {
    let (n, len) = decode_unsigned(cursor.rest()).ok()?;
    cursor.take(len)?;
    Some(n)
}

/// Length of a compact array or string; null (0) is none that a non-null field has.
fn compact_len(cursor: &mut Cursor<'_>) -> Option<u32> {
    unsigned(cursor)?.checked_sub(1)
}

fn compact_string<'a>(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let len = compact_len(cursor)?;
    cursor.take(usize::try_from(len).ok()?)
}

fn skip_tags(cursor: &mut Cursor<'_>) -> Option<()> {
    for _ in 0..unsigned(cursor)? {
        let _tag = unsigned(cursor)?;
        let len = unsigned(cursor)?;
        cursor.take(usize::try_from(len).ok()?)?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values made with Kafka's own classes.
    #[test]
    fn all_seven_types() {
        let parse = |kind: i16, value: &'static [u8]| {
            let [high, low] = kind.to_be_bytes();
            let key: &'static [u8; 4] = match (high, low) {
                (0, 0) => &[0, 0, 0, 0],
                (0, 1) => &[0, 0, 0, 1],
                (0, 2) => &[0, 0, 0, 2],
                (0, 3) => &[0, 0, 0, 3],
                (0, 4) => &[0, 0, 0, 4],
                (0, 5) => &[0, 0, 0, 5],
                _ => &[0, 0, 0, 6],
            };
            Control::parse(Some(key), Some(value)).unwrap().value
        };
        for kind in [0, 1] {
            let ControlValue::EndTransaction { version: 0, coordinator_epoch: 8 } =
                parse(kind, &[0, 0, 0, 0, 0, 8])
            else {
                panic!("marker {kind}")
            };
        }
        let leader = b"\0\0\0\0\0\x01\x03\0\0\0\x01\0\0\0\0\x02\0\x02\0\0\0\x01\0\0";
        let ControlValue::LeaderChange { leader_id: 1, voters, granting_voters, .. } =
            parse(2, leader)
        else {
            panic!("leader change")
        };
        assert!(voters.map(|voter| voter.id).eq([1, 2]));
        assert!(granting_voters.map(|voter| voter.id).eq([1]));
        let header = b"\0\0\0\0\x01\x8b\xcf\xe5\x68\0\0";
        let ControlValue::SnapshotHeader {
            last_contained_log_timestamp: 1_700_000_000_000, ..
        } = parse(3, header)
        else {
            panic!("snapshot header")
        };
        assert!(matches!(parse(4, b"\0\0\0"), ControlValue::SnapshotFooter { version: 0 }));
        let version = parse(5, b"\0\0\0\x01\0");
        assert!(matches!(version, ControlValue::KraftVersion { kraft_version: 1, .. }));
        let voters = b"\0\0\x02\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\
            \x02\x02C\x02h\x23\x85\0\0\0\0\x01\0\0\0";
        let ControlValue::KraftVoters { mut voters, .. } = parse(6, voters) else {
            panic!("voters")
        };
        let voter = voters.next().unwrap();
        assert!(voters.next().is_none());
        assert_eq!((voter.id, voter.kraft_versions), (1, Some((0, 1))));
        let id = [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2];
        assert_eq!(voter.directory_id, Some(id));
        let endpoint = voter.endpoints.unwrap().next().unwrap();
        assert_eq!(endpoint, Endpoint { name: b"C", host: b"h", port: 9093 });
    }

    #[test]
    fn what_makes_no_sense() {
        let marker = Some(&[0u8, 0, 0, 0, 0, 8][..]);
        let fault = |key, value| Control::parse(key, value).unwrap_err();
        assert_eq!(fault(None, marker), ControlFault::NullKey);
        assert_eq!(fault(Some(&[0, 0][..]), marker), ControlFault::ShortKey(2));
        assert_eq!(fault(Some(&[0xff, 0xff, 0, 0]), marker), ControlFault::KeyVersion(-1));
        assert_eq!(fault(Some(&[0; 4]), None), ControlFault::NullValue);
        assert_eq!(fault(Some(&[0; 4]), Some(&[0; 3])), ControlFault::ShortValue(3));
        let negative = Some(&[0x80, 0, 0, 0, 0, 0][..]);
        assert_eq!(fault(Some(&[0; 4]), negative), ControlFault::ValueVersion(i16::MIN));
        // A count far beyond what is there ends at once.
        let huge = Some(&[0, 0, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0x0f][..]);
        assert!(matches!(fault(Some(&[0, 0, 0, 2]), huge), ControlFault::ShortValue(11)));
        let unknown = Control::parse(Some(&[0, 9, 0, 77]), None).unwrap();
        assert_eq!(unknown.control_type, ControlType::Unknown(77));
        assert_eq!(unknown.key_version, 9);
    }
}
