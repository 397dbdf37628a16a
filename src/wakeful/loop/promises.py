"""Finds promises of later work in an answer: "I'll check again in 20 minutes".

A promise is a sentence in which the agent itself commits to do something at a later time, or to watch something. Offers
("if you want, I can …"), questions, quotations, the past, and the work of others do not count. An overlooked promise
costs nothing; a wrong reminder costs a model call. So a sentence in doubt does not count.

Every pattern starts at the edge of a word and has bounded repeats, so the time is linear in the length.
"""

import re
from dataclasses import dataclass

# The words of promises in English, German, French and Spanish, as patterns for sentences with single spaces.


@dataclass(frozen=True, slots=True)
class Language:
    """The patterns of one language. A group `no` in a commitment denies it."""

    commits: re.Pattern[str]  # "I will …": the agent says what it is going to do
    later: re.Pattern[str]  # a time after this run
    watches: re.Pattern[str]  # a commitment that lasts beyond this run by itself: "I'll keep an eye on it"
    up_to_user: re.Pattern[str]  # an offer, or a condition that the person decides
    denied: re.Pattern[str]  # right after a commitment
    elsewhere: re.Pattern[str]  # from here on, a time is not that of the commitment: "so that you can go back later"


def _either(*patterns: str) -> str:
    return f"(?:{'|'.join(patterns)})"


def _any(words: str) -> str:
    return _either(*words.split())


def _whole(*patterns: str) -> re.Pattern[str]:
    """Match one of the patterns at the edges of words."""
    return re.compile(rf"(?<![\w']){_either(*patterns)}(?!\w)", re.IGNORECASE)


def _part(*patterns: str) -> re.Pattern[str]:
    return re.compile(_either(*patterns), re.IGNORECASE)


# ── English ─────────────────────────────────────────────────────────────────────────────────────────────────────────

EN_WILL = r"(?:i|we)(?:'ll| will| shall|'m going to| am going to|'re going to| are going to)"
EN_UNIT = _any("second minute min hour day night morning afternoon evening week weekend weekday month") + "s?"
EN_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
EN_A_FEW = r"(?:\d+|an?|half an?|a few|a couple of|some|[a-z]{3,8})"
# Work on data for another time, or no work: "I'll add the meeting on Monday to the table".
EN_NOW = _any(
    "assume explain describe show leave be have need see treat call use add insert enter save note record mark list "
    "put include summari[sz]e convert bed"
)
EN_TELL = r"(?:let you know|(?:notify|ping|alert|update|message|inform) you)"
EN_BOOKED = r"(?:a|an|the|your) (?:[a-z]+ )?" + _any("reminder recall alarm timer check-?in wake-?up follow-?up")
ENGLISH = Language(
    commits=_whole(
        rf"(?:{EN_WILL}|^will)(?! (?:(?:now|then|also|just|simply) )?{EN_NOW}\b)",
        r"(?:i|we) (?:plan|intend) to",
        r"let me (?:check|look|try|come) (?:back|again)",
    ),
    later=re.compile(
        r"(?<![\w'])(?<!for )(?<!until )(?<!of )(?<!from )"
        + _either(
            rf"in (?:(?:about|around|roughly|another|the) )?{EN_A_FEW} {EN_UNIT}",
            r"later|shortly|overnight|tomorrow(?!'s)|tonight(?!'s)|this (?:evening|afternoon)(?!'s)",
            rf"next (?:{EN_UNIT}|{EN_DAY}|run|time)",
            rf"on {EN_DAY}s?",
            r"(?:at|around|before|by) (?:noon|midnight|\d{1,2}(?::\d\d)?(?: ?[ap]\.?m\.?)?)",
            rf"(?:every|each) (?:(?:\d+|two|three|few|other|couple of|half) )?(?:{EN_UNIT}|{EN_DAY})",
            r"hourly|daily|regularly|periodically|from now on",
            r"as soon as|once (?:the|it|they|this|that|all|there)",
            r"after (?:lunch|dinner|breakfast|work|midnight|the weekend)",
            rf"wait (?:for )?{EN_A_FEW} {EN_UNIT}",
        )
        + r"(?!\w)",
        re.IGNORECASE,
    ),
    watches=_whole(
        rf"{EN_WILL} (?:(?:also|then|now|of course|continue to|be sure to|make sure to) )?"
        + _either(
            r"keep (?:an eye|monitoring|watching|checking|you (?:posted|updated|informed))",
            r"be (?:watching|monitoring|back)",
            r"monitor|watch (?:the|it|for|this)|stay on it|remind you",
            r"(?:follow|pick this) up|report back|get back to you|come back to|circle back|check back",
            rf"(?:[^,;]{{1,60}} and (?:then )?)?{EN_TELL} (?:when|if|once|as soon as|whenever)",
            rf"(?:set|schedule|book|create) {EN_BOOKED}",
        ),
        rf"i(?:'m| am) (?:setting|scheduling|booking) (?:myself )?{EN_BOOKED}",
    ),
    up_to_user=_whole(
        r"(?:if|once|when|whenever|as soon as|after|should|unless|until|in case) you",
        r"(?:let me know|tell me|remind me|ask me|send me|ping me|say so|say the word)",
        r"would you like|do you want|shall i|if (?:necessary|needed|wanted|desired|that)",
        r"you (?:said|say|asked|told|wrote)|says?|said|wrote|writes",
    ),
    denied=_part(r" (?:not|never|no longer)\b"),
    elsewhere=_part(
        r": ",
        r"\b(?:make|create|prepare|draft|write|build|generate) [^,;]{1,60} for ",
        r" (?:so that|so you|what|whether|which|who|how|that|because|for you|you can) ",
    ),
)

# ── German ──────────────────────────────────────────────────────────────────────────────────────────────────────────

DE_VERB = _any(
    "schaue schau sehe prüfe überprüfe kontrolliere checke teste versuche probiere erinnere starte komme kümmere "
    "schicke sende melde sage gebe benachrichtige informiere beobachte wiederhole führe mache setze hole warte lade "
    "überwache hake frage berichte arbeite erledige wecke bleibe werfe werte"
)
DE_UNIT = _any("sekunden? minuten? stunden? tagen? tage wochen? monaten?")
DE_DAY = _any("montag dienstag mittwoch donnerstag freitag samstag sonntag")
DE_YOU = r"(?:dich|sie|euch)"
GERMAN = Language(
    commits=_whole(rf"ich (?:werde|{DE_VERB})", rf"(?:werde|{DE_VERB}) ich", r"^werde"),
    later=_whole(
        rf"in (?:(?:etwa|ca\.?|rund) )?(?:\d+|eine[rmn]?|ein paar|einer halben|[a-zäöüß]{{3,8}}) {DE_UNIT}",
        r"später|(?<!für )morgen|übermorgen|heute (?:abend|nacht|nachmittag|mittag)",
        rf"(?<!der )(?<!des )(?<!für )nächste[nrsm]? (?:woche|mal|lauf|tag|{DE_DAY})",
        rf"am {DE_DAY}",
        r"um \d{1,2}(?:[:.]\d\d)?(?: uhr)?",
        rf"jede[nrs]? (?:tag|abend|morgen|stunde|woche|nacht|mittag|minute|{DE_DAY})",
        rf"alle (?:\d+|paar|zwei|drei|fünf|zehn) {DE_UNIT}",
        r"stündlich|täglich|wöchentlich|regelmäßig|sobald|ab jetzt|von nun an",
    ),
    watches=_whole(
        "ich "
        + _either(
            r"melde mich|bleibe dran|behalte|überwache|komme darauf zurück",
            r"beobachte\b[^,;]{0,60}\bweiter",
            r"werde\b[^,;]{0,60}\b(?:weiter beobachten|im auge behalten|auf dem laufenden halten|überwachen)",
            rf"halte {DE_YOU} auf dem laufenden|erinnere {DE_YOU}",
            rf"werde {DE_YOU} (?:daran )?(?:erinnern|benachrichtigen)",
            r"(?:sage|gebe) (?:dir|ihnen|euch) bescheid,? (?:sobald|wenn)",
            rf"benachrichtige {DE_YOU},? (?:sobald|wenn)",
        )
    ),
    up_to_user=_whole(
        r"(?:wenn|falls|sobald|sollten|solltest) (?:du|sie|ihr)",
        r"soll(?:te)? ich|könnte|würde|bei bedarf|auf wunsch|möchtest du|willst du|melde dich",
        r"(?:sag|gib|frag|schick|sagen sie|geben sie|lass) (?:mir|mich)",
    ),
    denied=_part(r"[^,;]{0,60}\b(?:nicht|nie|kein\w*)\b"),
    elsewhere=_part(r", ?(?:damit|weil|was|ob|welche[rsnm]?|dass|wie) "),
)

# ── French ──────────────────────────────────────────────────────────────────────────────────────────────────────────

FR_CLITIC = r"(?:(?:te|vous|le|la|les|lui|me|nous|leur|y|en|m'en|s'en) |[ltm]')*"
FR_VERB = _any(
    "reviens repasse garde préviens occupe réessaie réessaye vérifie revérifie regarde relance envoie surveille "
    "rappelle recommence retente reprends relis contrôle avertis informe"
)
FR_NOW = _any("ajouter inscrire noter enregistrer expliquer résumer lister supposer mettre")
FR_UNIT = _any("secondes? minutes? min heures? jours? semaines? mois")
FR_DAY = _any("lundi mardi mercredi jeudi vendredi samedi dimanche")
FRENCH = Language(
    commits=_whole(
        rf"je {FR_CLITIC}(?!vais {FR_NOW}|{FR_NOW}ai)(?:\w{{2,20}}rai|vais {FR_CLITIC}\w{{2,20}}|{FR_VERB})",
    ),
    later=_whole(
        rf"dans (?:\d+|une?|quelques|deux|trois|cinq|dix|vingt|trente|environ \d+) {FR_UNIT}",
        r"plus tard|(?<!pour )(?<!de )demain|ce soir|cette nuit|cet après-midi|désormais|régulièrement",
        rf"(?<!pour )(?<!de )(?<!du )(?<!jusqu'à )(?<!le ){FR_DAY}",
        rf"attendre \w{{1,10}} {FR_UNIT}",
        r"à \d{1,2} ?(?:h|heures)(?: ?\d\d)?",
        rf"chaque (?:matin|jour|heure|soir|semaine|nuit|mois|{FR_DAY})",
        r"toutes les (?:\w+ )?(?:minutes|heures|semaines|nuits)|tous les (?:\w+ )?(?:jours|matins|soirs|mois)",
        r"dès que|la prochaine fois|la semaine prochaine",
    ),
    watches=_whole(
        f"je {FR_CLITIC}"
        + _either(
            r"tiendrai (?:au courant|informée?s?)|tiens au courant|reviens vers|reviendrai vers",
            r"garde(?:rai)? un œil|surveille(?:rai)?|vais (?:continuer à )?surveiller",
            r"préviendrai|préviens|avertirai|rappellerai|vais (?:te|vous) (?:prévenir|avertir|rappeler)",
        )
    ),
    up_to_user=_whole(
        r"(?:si|dès que|quand|lorsque|une fois que) (?:vous|tu)",
        r"voulez-vous|veux-tu|souhaitez|souhaites|je peux|je pourrais|au besoin|si besoin|si nécessaire",
        r"dites-moi|dis-moi|envoyez-moi|envoie-moi|n'hésite[zs]?",
    ),
    denied=_part(r" (?:pas|jamais|plus (?!tard))\b"),
    elsewhere=_part(r"(?<!dès) que ", r" (?:pour que|parce que|ce qui) "),
)

# ── Spanish ─────────────────────────────────────────────────────────────────────────────────────────────────────────

ES_NO = r"(?:(?P<no>no|nunca|tampoco) )?(?:(?:te|le|lo|la|los|las|les|me|se|os|nos) )*"
ES_NOW = _any("añadir agregar anotar guardar explicar resumir supondr listar poner")
ES_VERB = _any("envío mando miro reviso aviso escribo confirmo digo llamo recuerdo compruebo encargo")
ES_UNIT = _any("segundos? minutos? min horas? días? semanas? meses")
ES_DAY = _any("lunes martes miércoles jueves viernes sábado domingo")
ES_A_FEW = r"(?:\d+|una?|unos|unas|un par de|dos|tres|cinco|diez|veinte|media|pocos|pocas)"
SPANISH = Language(
    commits=_whole(
        rf"{ES_NO}(?!{ES_NOW}é)(?:\w{{2,20}}ré|(?:voy|vuelvo) a \w{{3,25}}|sigo \w{{4,20}}ndo|(?<= ){ES_VERB})",
    ),
    later=_whole(
        rf"(?:en|dentro de) {ES_A_FEW} {ES_UNIT}",
        r"más tarde|(?<!para )(?<!de )(?<!hasta )mañana|esta (?:noche|tarde)|a partir de ahora",
        rf"(?<!para )el (?:próximo )?{ES_DAY}",
        r"a las \d{1,2}(?::\d\d)?",
        rf"cada (?:mañana|día|hora|noche|tarde|semana|{ES_A_FEW} {ES_UNIT})",
        r"todos los días|todas las (?:mañanas|noches|tardes|semanas)",
        r"en cuanto|la próxima (?:vez|semana)|diariamente|regularmente|periódicamente",
    ),
    watches=_whole(
        ES_NO
        + _either(
            r"avisaré|notificaré|recordaré|vigilaré|monitorizaré|monitorearé",
            r"quedo pendiente|aviso (?:cuando|en cuanto)",
            r"mantendré (?:informad[oa]s?|al tanto|al corriente)|estaré (?:pendiente|atent[oa]|al tanto)",
            r"seguiré (?:vigilando|pendiente|atent[oa]|monitorizando|monitoreando|observando|de cerca)",
            r"voy a (?:vigilar|avisarte|recordarte|monitorear|estar pendiente)",
        )
    ),
    up_to_user=_whole(
        r"si (?:tú )?(?:lo )?(?:quieres?|prefieres?|necesitas?|deseas?|te parece|hace falta)",
        r"quieres? que|puedo|podría|me gustaría",
        r"(?:cuando|en cuanto|una vez que) (?:me|tú|usted|lo tengas|quieras|termines|estés)",
        r"dime|dígame|av[ií]same|env[ií]ame|házmelo saber",
    ),
    denied=_part(r"(?!)"),
    elsewhere=_part(r" (?:para que|porque|qué|quién|cuál|cuáles) "),
)

LANGUAGES = (ENGLISH, GERMAN, FRENCH, SPANISH)


MAX_READ = 20_000  # characters of an answer
MAX_SENTENCE = 600  # characters; a longer one is data

CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
QUOTED_LINE = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
QUOTED = re.compile(r'"[^"\n]*"|“[^“”\n]*”|„[^„“”\n]*[“”]|«[^«»\n]*»|‘[^‘’\n]*’(?!\w)')
SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|\n+")
APOSTROPHES = str.maketrans("’ʼ", "''")


def find_promise(text: str) -> str | None:
    """Return the first sentence of an answer that promises later work, or None."""
    said = QUOTED_LINE.sub("", CODE.sub(" ", text[:MAX_READ]))
    for sentence in SENTENCE_END.split(QUOTED.sub(' "" ', said)):
        if len(sentence) > MAX_SENTENCE or sentence.rstrip(' *_)"').endswith("?"):
            continue
        plain = " ".join(sentence.translate(APOSTROPHES).replace("*", "").split())
        if any(_is_promise(plain, language) for language in LANGUAGES):
            return sentence.strip()
    return None


def _is_promise(sentence: str, language: Language) -> bool:
    if language.up_to_user.search(sentence):
        return False
    if any(not _is_denied(each, language) for each in language.watches.finditer(sentence)):
        return True
    return any(
        language.later.search(_up_to_elsewhere(sentence, commit.end(), language))
        for commit in language.commits.finditer(sentence)
        if not _is_denied(commit, language)
    )


def _up_to_elsewhere(sentence: str, start: int, language: Language) -> str:
    other = language.elsewhere.search(sentence, start)
    return sentence if other is None else sentence[: other.start()]


def _is_denied(commitment: re.Match[str], language: Language) -> bool:
    is_before = commitment.groupdict().get("no") is not None
    return is_before or language.denied.match(commitment.string, commitment.end()) is not None
