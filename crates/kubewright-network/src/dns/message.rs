//! Messages of DNS (RFC 1035, EDNS of RFC 6891): what a question is answered.

use std::net::IpAddr;

use simple_dns::rdata::{A, AAAA, CNAME, OPT, PTR, RData, SOA, SRV, TXT};
use simple_dns::{
    CLASS, Name, OPCODE, Packet, PacketFlag, QCLASS, QTYPE, Question, RCODE, ResourceRecord, TYPE,
};

use crate::zone::{Answer, Data, Record, Wanted, Zone};

/// How long who asked may remember an answer, in seconds: Services come and go.
const REMEMBERED: u32 = 5;
/// What a datagram may hold unless who asks says that it takes more.
const DATAGRAM: u16 = 512;
/// The most that is sent in a datagram, whatever who asks would take: what goes through any network unbroken.
const LARGEST: u16 = 1232;
/// How many aliases of the cluster are followed.
const ALIASES: usize = 8;

/// What becomes of a message.
pub(crate) enum Outcome {
    /// It is no question, and stays without an answer.
    Dropped,
    /// This is the answer.
    Answered(Reply),
    /// Others have to be asked.
    Elsewhere,
}

/// An answer that is not written yet.
pub(crate) struct Reply {
    packet: Packet<'static>,
    /// How many bytes a datagram with it may have.
    limit: u16,
    /// A name outside the cluster that the answers end at, of which more is wanted.
    pub(crate) continued: Option<String>,
}

/// What is said to a message.
pub(crate) fn answer(message: &[u8], zone: &Zone) -> Outcome {
    let Ok(query) = Packet::parse(message) else {
        // What has a header can be told that the rest is not understood.
        let Some(&[first, second]) = message.get(..2).filter(|_| message.len() >= 12) else {
            return Outcome::Dropped;
        };
        if message[2] & 0x80 != 0 {
            return Outcome::Dropped;
        }
        let mut packet = Packet::new_reply(u16::from_be_bytes([first, second]));
        *packet.rcode_mut() = RCODE::FormatError;
        return Outcome::Answered(Reply { packet, limit: DATAGRAM, continued: None });
    };
    if query.has_flags(PacketFlag::RESPONSE) {
        return Outcome::Dropped;
    }
    let mut reply = Reply::to(&query);
    if query.opcode() != OPCODE::StandardQuery {
        return Outcome::Answered(reply.with(RCODE::NotImplemented));
    }
    let [question] = &query.questions[..] else {
        return Outcome::Answered(reply.with(RCODE::FormatError));
    };
    if !matches!(question.qclass, QCLASS::CLASS(CLASS::IN) | QCLASS::ANY) {
        return Outcome::Answered(reply.with(RCODE::Refused));
    }
    let wanted = wanted(question.qtype);
    let mut name = question.qname.to_string();
    reply.packet.questions.push(question.clone().into_owned());
    for _ in 0..ALIASES {
        match zone.find(&name, wanted) {
            Answer::Elsewhere if reply.packet.answers.is_empty() => return Outcome::Elsewhere,
            Answer::Elsewhere => reply.continued = Some(name),
            Answer::NoSuchName => reply = reply.without_records(zone).with(RCODE::NameError),
            Answer::NothingOfKind => reply = reply.without_records(zone),
            Answer::Records { answers, additional } => {
                let alias = match (wanted, &answers[..]) {
                    (Wanted::Alias | Wanted::Any, _) => None,
                    (_, [Record { data: Data::Alias(target), .. }]) => Some(target.clone()),
                    _ => None,
                };
                reply.packet.answers.extend(answers.iter().filter_map(written));
                reply.packet.additional_records.extend(additional.iter().filter_map(written));
                if let Some(target) = alias {
                    name = target;
                    continue;
                }
            }
        }
        break;
    }
    Outcome::Answered(reply)
}

/// A question for another server: about `name`, of the kind that `message` asks for.
pub(crate) fn about(name: &str, message: &[u8]) -> Option<Vec<u8>> {
    let query = Packet::parse(message).ok()?;
    let question = query.questions.first()?;
    let mut asked = Packet::new_query(query.id());
    asked.set_flags(PacketFlag::RECURSION_DESIRED);
    asked.questions.push(Question::new(Name::new(name).ok()?, question.qtype, question.qclass, false));
    asked.build_bytes_vec_compressed().ok()
}

/// Nobody who could be asked has answered.
pub(crate) fn failure(message: &[u8]) -> Option<Reply> {
    let query = Packet::parse(message).ok()?;
    let mut reply = Reply::to(&query);
    reply.packet.questions = query.questions.into_iter().map(Question::into_owned).collect();
    Some(reply.with(RCODE::ServerFailure))
}

impl Reply {
    fn to(query: &Packet<'_>) -> Self {
        let mut packet = Packet::new_reply(query.id());
        packet.set_flags(PacketFlag::RECURSION_AVAILABLE | PacketFlag::AUTHORITATIVE_ANSWER);
        if query.has_flags(PacketFlag::RECURSION_DESIRED) {
            packet.set_flags(PacketFlag::RECURSION_DESIRED);
        }
        let taken = query.opt().map(|opt| opt.udp_packet_size);
        if taken.is_some() {
            *packet.opt_mut() = Some(OPT { opt_codes: Vec::new(), udp_packet_size: LARGEST, version: 0 });
        }
        let limit = taken.unwrap_or(DATAGRAM).clamp(DATAGRAM, LARGEST);
        Self { packet, limit, continued: None }
    }

    fn with(mut self, code: RCODE) -> Self {
        *self.packet.rcode_mut() = code;
        self
    }

    /// Says whose names these are, and for how long it may be remembered that there is nothing (RFC 2308).
    fn without_records(mut self, zone: &Zone) -> Self {
        let domain = zone.domain();
        let names = (
            Name::new(domain).map(Name::into_owned),
            Name::new(&format!("ns.dns.{domain}")).map(Name::into_owned),
            Name::new(&format!("hostmaster.{domain}")).map(Name::into_owned),
        );
        if let (Ok(of), Ok(mname), Ok(rname)) = names {
            let data = SOA {
                mname,
                rname,
                serial: 1,
                refresh: 7200,
                retry: 1800,
                expire: 86400,
                minimum: REMEMBERED,
            };
            self.packet.name_servers.push(ResourceRecord::new(of, CLASS::IN, REMEMBERED, RData::SOA(data)));
        }
        self
    }

    /// Adds what another server said of the name that this one ends at.
    pub(crate) fn continue_with(&mut self, answer: &[u8]) {
        let Ok(answer) = Packet::parse(answer) else { return };
        let code = answer.rcode();
        self.packet.answers.extend(answer.answers.into_iter().map(ResourceRecord::into_owned));
        self.packet.remove_flags(PacketFlag::AUTHORITATIVE_ANSWER);
        if self.packet.rcode() == RCODE::NoError {
            *self.packet.rcode_mut() = code;
        }
    }

    /// Its bytes; `None` when it cannot be written.
    pub(crate) fn stream(&self) -> Option<Vec<u8>> {
        self.packet.build_bytes_vec_compressed().ok()
    }

    /// Its bytes for a datagram: where it is too long it says so, and who asks comes again over TCP.
    pub(crate) fn datagram(mut self) -> Option<Vec<u8>> {
        let whole = self.stream()?;
        if whole.len() <= usize::from(self.limit) {
            return Some(whole);
        }
        self.packet.answers.clear();
        self.packet.name_servers.clear();
        self.packet.additional_records.clear();
        self.packet.set_flags(PacketFlag::TRUNCATION);
        self.stream()
    }
}

fn wanted(kind: QTYPE) -> Wanted {
    match kind {
        QTYPE::ANY => Wanted::Any,
        QTYPE::TYPE(TYPE::A) => Wanted::V4,
        QTYPE::TYPE(TYPE::AAAA) => Wanted::V6,
        QTYPE::TYPE(TYPE::CNAME) => Wanted::Alias,
        QTYPE::TYPE(TYPE::SRV) => Wanted::Service,
        QTYPE::TYPE(TYPE::PTR) => Wanted::Pointer,
        QTYPE::TYPE(TYPE::TXT) => Wanted::Text,
        _ => Wanted::Other,
    }
}

/// A record as messages have it; `None` for names that are too long for them.
fn written(record: &Record) -> Option<ResourceRecord<'static>> {
    let name = |text: &str| Name::new(text).map(Name::into_owned).ok();
    let data = match &record.data {
        Data::Address(IpAddr::V4(address)) => RData::A(A::from(*address)),
        Data::Address(IpAddr::V6(address)) => RData::AAAA(AAAA::from(*address)),
        Data::Alias(target) => RData::CNAME(CNAME(name(target)?)),
        Data::Pointer(target) => RData::PTR(PTR(name(target)?)),
        Data::Text(text) => RData::TXT(TXT::new().with_string(text).ok()?.into_owned()),
        Data::Service { weight, port, target } => {
            RData::SRV(SRV { priority: 0, weight: *weight, port: *port, target: name(target)? })
        }
    };
    Some(ResourceRecord::new(name(&record.name)?, CLASS::IN, REMEMBERED, data))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixture::{endpoint, service, services, slice};

    fn zone() -> Zone {
        let endpoints: Vec<_> =
            (1..=100).map(|number| endpoint(&format!("127.64.0.{number}"), true)).collect();
        let all = services([
            service("web", json!({"clusterIP": "127.128.0.9", "ports": [{"name": "http", "port": 80}]})),
            service("many", json!({"clusterIP": "None"})),
            slice("many", json!(endpoints), json!([])),
            service("alias", json!({"type": "ExternalName", "externalName": "web.shop.svc.cluster.local"})),
            service(
                "circle",
                json!({"type": "ExternalName", "externalName": "circle.shop.svc.cluster.local"}),
            ),
            service("out", json!({"type": "ExternalName", "externalName": "example.org"})),
        ]);
        Zone::of(&all, "cluster.local")
    }

    fn query(name: &'static str, kind: TYPE) -> Packet<'static> {
        let mut query = Packet::new_query(7);
        query.set_flags(PacketFlag::RECURSION_DESIRED);
        query.questions.push(Question::new(
            Name::new(name).expect("a name"),
            QTYPE::TYPE(kind),
            QCLASS::CLASS(CLASS::IN),
            false,
        ));
        query
    }

    fn bytes(packet: &Packet<'_>) -> Vec<u8> {
        packet.build_bytes_vec().expect("bytes")
    }

    /// The datagram that answers, as its code, its answers, and whether it was too long.
    fn ask(query: &Packet<'_>) -> (RCODE, Vec<String>, bool) {
        let sent = bytes(query);
        let Outcome::Answered(reply) = answer(&sent, &zone()) else { panic!("no answer") };
        let datagram = reply.datagram().expect("a datagram");
        let reply = Packet::parse(&datagram).expect("a message");
        assert_eq!(reply.id(), query.id());
        assert!(reply.has_flags(PacketFlag::RESPONSE));
        let answers = reply.answers.iter().map(|record| match &record.rdata {
            RData::A(address) => std::net::Ipv4Addr::from(address.address).to_string(),
            RData::CNAME(name) => name.0.to_string(),
            other => format!("{other:?}"),
        });
        (reply.rcode(), answers.collect(), reply.has_flags(PacketFlag::TRUNCATION))
    }

    #[test]
    fn a_question_has_its_answer() {
        let (code, answers, cut) = ask(&query("web.shop.svc.cluster.local", TYPE::A));
        assert_eq!((code, answers, cut), (RCODE::NoError, vec!["127.128.0.9".to_owned()], false));
        assert_eq!(ask(&query("web.shop.svc.cluster.local", TYPE::AAAA)).0, RCODE::NoError);
        assert_eq!(ask(&query("gone.shop.svc.cluster.local", TYPE::A)).0, RCODE::NameError);
    }

    #[test]
    fn that_there_is_nothing_may_be_remembered_for_seconds() {
        let sent = bytes(&query("gone.shop.svc.cluster.local", TYPE::A));
        let Outcome::Answered(reply) = answer(&sent, &zone()) else { panic!("no answer") };
        let [ResourceRecord { ttl: REMEMBERED, rdata: RData::SOA(said), .. }] =
            &reply.packet.name_servers[..]
        else {
            panic!("{:?}", reply.packet.name_servers);
        };
        assert_eq!(said.minimum, REMEMBERED);
    }

    #[test]
    fn aliases_of_the_cluster_are_followed_and_circles_end() {
        let (_, answers, _) = ask(&query("alias.shop.svc.cluster.local", TYPE::A));
        assert_eq!(answers, ["web.shop.svc.cluster.local", "127.128.0.9"]);
        assert_eq!(ask(&query("circle.shop.svc.cluster.local", TYPE::A)).1.len(), ALIASES);
        let (_, answers, _) = ask(&query("alias.shop.svc.cluster.local", TYPE::CNAME));
        assert_eq!(answers, ["web.shop.svc.cluster.local"]);
    }

    #[test]
    fn an_alias_that_leads_outside_is_to_be_continued_there() {
        let sent = bytes(&query("out.shop.svc.cluster.local", TYPE::A));
        let Outcome::Answered(mut reply) = answer(&sent, &zone()) else { panic!("no answer") };
        assert_eq!(reply.continued.as_deref(), Some("example.org"));
        let asked = about("example.org", &sent).expect("a question");
        let asked = Packet::parse(&asked).expect("a question");
        assert_eq!(asked.questions[0].qname.to_string(), "example.org");
        let mut said = Packet::new_reply(7);
        let address = RData::A(A::from(std::net::Ipv4Addr::new(10, 1, 2, 3)));
        said.answers.push(ResourceRecord::new(
            Name::new("example.org").expect("a name"),
            CLASS::IN,
            60,
            address,
        ));
        reply.continue_with(&bytes(&said));
        assert_eq!(reply.packet.answers.len(), 2);
    }

    #[test]
    fn names_of_others_are_for_others_to_answer() {
        let sent = bytes(&query("example.org", TYPE::A));
        assert!(matches!(answer(&sent, &zone()), Outcome::Elsewhere));
        let reply = failure(&sent).and_then(Reply::datagram).expect("an answer");
        assert_eq!(Packet::parse(&reply).expect("a message").rcode(), RCODE::ServerFailure);
    }

    #[test]
    fn what_is_too_long_for_a_datagram_says_so_and_fits_a_stream() {
        let (_, answers, cut) = ask(&query("many.shop.svc.cluster.local", TYPE::A));
        assert!(cut && answers.is_empty());
        let mut large = query("many.shop.svc.cluster.local", TYPE::A);
        *large.opt_mut() = Some(OPT { opt_codes: Vec::new(), udp_packet_size: 4096, version: 0 });
        assert!(ask(&large).2, "more than goes through every network");
        let sent = bytes(&large);
        let Outcome::Answered(reply) = answer(&sent, &zone()) else { panic!("no answer") };
        let whole = reply.stream().expect("a message");
        assert_eq!(Packet::parse(&whole).expect("a message").answers.len(), 100);
    }

    #[test]
    fn what_is_no_question_is_refused_or_dropped() {
        for sent in [&b""[..], b"abc", &[0; 11]] {
            assert!(matches!(answer(sent, &zone()), Outcome::Dropped), "{sent:?}");
        }
        assert!(matches!(answer(&bytes(&Packet::new_reply(1)), &zone()), Outcome::Dropped));
        let mut update = query("web.shop.svc.cluster.local", TYPE::A);
        *update.opcode_mut() = OPCODE::Update;
        assert_eq!(ask(&update).0, RCODE::NotImplemented);
        let mut none = query("web.shop.svc.cluster.local", TYPE::A);
        none.questions.clear();
        assert_eq!(ask(&none).0, RCODE::FormatError);
        let mut broken = bytes(&query("web.shop.svc.cluster.local", TYPE::A));
        broken.truncate(20);
        let Outcome::Answered(reply) = answer(&broken, &zone()) else { panic!("no answer") };
        assert_eq!(reply.packet.rcode(), RCODE::FormatError);
    }
}
