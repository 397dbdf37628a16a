"""Linter of briefs: a brief must be a task that names something to work with, not a chat reminder.

It must name a tool of the agent, a path, a URL or a table of its database, and name it outside of mere talk: messages,
reminders, and news such as "Your report.pdf is ready". A text that is not recognised as talk counts as work, because
refusing a good brief is the worse mistake.

Every pattern starts at the edge of a word and has a bounded look-ahead, so the time is linear in the length.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from textwrap import shorten
from typing import Literal

from wakeful.core.errors import Invalid

FIELD = "additional_context_message"
GOOD_FORM = "'Read /tmp/build.log with read_file. If it shows errors, report the last 50 lines.'"
NOTIFY_FORM = "'Use notify to tell the user: the oven timer is up.'"
MAX_NAMES_SHOWN = 12  # enough to correct the brief, even with many MCP tools


def _any(words: str) -> str:
    """Return a list of words as a pattern of alternatives; an underscore is a space in a phrase."""
    return "|".join(word.replace("_", r"\s+") for word in sorted(words.split(), reverse=True))


# ── Things to work with ─────────────────────────────────────────────────────────────────────────────────────────────

# Letters of a name. Japanese is not among them, because it may follow a name without a space: `shellで`.
L = r"A-Za-z0-9_\u00c0-\u024f\u0370-\u052f"
P = rf"{L}.*?~$%{{}}+/\\-"  # characters of a path

# Only known endings make a dotted word a file: `10.30`, `e.g.`, `a.m.` and `sensor.temp` are not files.
ENDINGS = _any("""
    txt md rst adoc log csv tsv json jsonl ndjson xml yaml yml toml ini cfg conf env lock sql db sqlite sqlite3
    parquet py pyi ipynb js mjs cjs jsx ts tsx css scss html htm vue go rs rb php java kt swift cs cpp cc hpp sh
    bash zsh ps1 bat lua pl tex bib pdf doc docx odt rtf xls xlsx ods ppt pptx odp epub png jpg jpeg gif svg webp
    heic mp3 wav flac mp4 mkv mov zip tar gz tgz bz2 xz zst 7z rar iso bak old tmp out err diff patch pem crt key
    ics eml vcf tf gradle plist service pid dat bin po pot properties proto graphql astro svelte dart scala exs
    erl hs jl nix avif bmp tiff ttf woff2 webm ogg opus m4a avi deb rpm jar whl apk dmg exe dll gpx kml geojson
    feather arrow orc h5 npy npz pkl onnx gpg asc srt vtt tmpl j2 mdx lst
""")
# Products that look like a file.
PRODUCTS = r"(?:angular|chart|d3|ember|express|nest|next|node|nuxt|react|three|vue)\.js"
# Files without an ending.
WHOLE_NAMES = (
    r"(?:Makefile|Dockerfile|Jenkinsfile|Vagrantfile|Procfile|Gemfile)(?:\.[a-z]+)?|README|CHANGELOG|LICENSE|crontab"
    r"|\.(?:env|gitignore|dockerignore|editorconfig|bashrc|zshrc|profile|npmrc)"
)
# `and/or`, `TCP/IP` and `client/server` are not paths; one that starts with a common folder is.
FOLDERS = _any("src lib docs tests logs notes scripts config downloads reports backups uploads workspace")
# Only common top-level domains make a dotted word a site, without those that are words too: `it`, `at`, `me`, `is`.
DOMAINS = _any("com org net edu gov io dev app ai co eu de es fr uk jp ch nl ru info cloud")
STARTS = r"""(?:^|(?<=[\s"'`(\[{=:,;|>\u2018-\u201f\u3000-\u30ff\u3400-\u9fff]))"""

THING = re.compile(
    "|".join(
        (
            rf"(?<![{L}])[a-z][a-z0-9+.-]{{1,20}}://[!-~]+",  # URL
            rf"(?<![{L}@./\\-])(?:localhost|\d{{1,3}}(?:\.\d{{1,3}}){{3}})(?::\d{{2,5}}|/)[!-~]*",
            rf"(?<![{L}@./\\-])www\.[!-~]+",
            rf"(?<![{L}@./\\-])(?:[a-z0-9-]{{1,63}}\.)+[a-z]{{2,24}}/[!-~]*",  # a site with a page
            rf"(?<![{L}@./\\-])(?:[a-z0-9-]{{1,63}}\.)+(?-i:{DOMAINS})(?![{L}@-]|\.[{L}])(?::\d{{2,5}})?",
            rf"{STARTS}/[{L}.][{P}]+",  # absolute
            rf"(?<![{P}])(?:~|\.\.?|[a-z]:|\$[{L}{{}}]{{1,40}}|%[{L}]{{1,40}}%)[\\/][{P}]*",  # home, relative, drive
            rf"(?<![{P}])\\\\[{L}][{P}]*",  # UNC
            rf"(?<![@{P}])(?!{PRODUCTS}(?![{L}]))[{P}]*[{L}*}})]\.(?:{ENDINGS})(?![{L}])",  # a file by its ending
            rf"(?<=[\u3040-\u30ff\u3400-\u9fff])\.(?:{ENDINGS})(?![{L}])",
            rf"(?<![{P}])(?=[{P}]*/)[{P}]*[{L}]\.[a-z][a-z0-9]{{1,9}}(?![{L}])",  # in a folder, any ending is enough
            rf"(?<![{P}])[{P}]*[{L}]{{3}}\.[chr](?![{L}])",  # main.c, but not `d.h.`
            rf"(?<![{P}])(?-i:{WHOLE_NAMES})(?![{L}])",
            rf"(?<![{P}])(?:{FOLDERS})[\\/][{P}]*",
            rf"(?<![{P}])[{L}.-]{{3}}[{L}./-]{{0,120}}/(?![{P}])",  # logs/, thesis/chapters/
            rf"(?<![{P}])\.?[{L}-]+\\[{P}]+",  # deploy\release
            rf"(?<![{P}])(?=[{L}.-]*/)(?=[{P}]*[_*]|\.[{L}])(?=[{P}]*[a-z])[{P}]+",  # team_a/inbox, out/*
        )
    ),
    re.IGNORECASE,
)

# ── Talk and work ───────────────────────────────────────────────────────────────────────────────────────────────────

# Names are replaced by these marks before sentences are parsed, so that the dots and words in a path do not count.
THING_MARK, TOOL_MARK = "\ue000", "\ue001"
NAMED = re.compile(f"[{THING_MARK}{TOOL_MARK}]")
UNKNOWN_NAME = re.compile(r"(?<!\w)[A-Za-z]+(?:_[A-Za-z0-9]+)+(?!\w)")  # looks like a tool or a table

# Recipients. The agent itself is not one: "Remind yourself of the plan in PLAN.md" is a task.
ROLES = _any("user customer client owner team boss manager family group others everyone everybody people")
PERSON = (
    rf"(?:(?:the|my|your|our|his|her|their|all|every|dr\.?|mr\.?|mrs\.?|ms\.?)\s+){{1,2}}(?!sub-?agent|agent)[{L}'’-]+"
    rf"|(?:me|him|her|them|us|you|{ROLES})\b|(?-i:[A-Z][a-zà-ÿ]+)\b"
)
# Verbs that only talk when a person follows.
TELLING = _any(
    "tell inform notify ping message text alert warn update let email mail write write_to say_to call poke nudge "
    "report_to mention_to announce_to reply_to"
)
# Sending one of these is talk; sending the rows of a table is work.
NOTE = _any("message note heads-?up reminder ping line text notification")
ASKING = _any(
    "remind ask congratulate thank wish greet assure encourage urge"
)  # never followed by something to look up
# A message that has to be looked up first is work: "Tell the user whether /tmp/done exists".
LOOKED_UP = _any("""
    whether if once as_soon_as how which what when where who why any all every everything number count total sum
    average content contents new latest
    ob sobald wie welche was wann wo
    si cuántos cuántas qué cuál cuándo cómo
    сколько что_нового есть_ли какие какой когда где
    combien quels? quelles? s['’]il ce_qu[ei] quand où
    quant[aeios]+ qual quais quale quali se cosa che_cosa onde dove come como o_que
""")
# Openings of chat reminders and of questions to the user.
REMINDERS = _any(rf"""
    don['’]?t_forget do_not_forget never_forget remember_to reminder(?!_to_(?:self|myself))
    friendly_reminder heads-?up fyi for_your_information just_letting just_wanted_to letting_you_know time_to time_for
    it['’]?s_time time['’]?s_up make_sure_the_user enjoy here_is here_are here['’]?s thanks_for thank_you
    would_you_like do_you_want shall_i should_i have_a_(?:nice|lovely|great|good)
    vergiss nicht_vergessen denk_daran denk_bitte_daran erinnerung
    no_olvides no_te_olvides recordatorio soll_ich quieres
    не_забудь не_забудьте напоминание пора хочешь
    n['’]oublie_pas n['’]oubliez_pas pense_à rappel não_esqueça não_se_esqueça lembrete promemoria
    non_dimenticar(?:e|ti)
    (?:the|my|your|our)_(?:{ROLES})_(?:should|must|needs?_to|has_to|have_to|ought_to)
""")
ELSEWHERE = "|".join(  # telling and reminding: two patterns each for German and Spanish, then ru, fr, pt, it
    (
        r"(?:sage?|erzähle?|erinnere?|informiere?|teile?|gib|melde|schreibe?|benachrichtige?|frage?|bitte)\s+(?:bitte\s+)?"
        rf"(?:(?:de[mnr]|die)\s+[{L}]+|mir|mich|ih[mnr]|ihnen|uns|allen|(?-i:[A-ZÄÖÜ][a-zäöüß]+))\b",
        r"(?:de[mn]|die|mi[rc]h?)\s+(?:(?:be)?nutzer(?:in)?|user|anwender|kunden?)?\s*(?:bitte\s+)?(?:daran\s+)?"
        r"(?:sagen|erinnern|informieren|mitteilen|benachrichtigen)\b",
        r"(?:d[ií](?:le|les|me)|recu[eé]rda(?:le|les|me)|av[ií]sa(?:le|les|me)|inf[oó]rma(?:le|les|me)|preg[uú]nta(?:le|les))\b"
        rf"(?:\s+al?\s+(?:la\s+)?[{L}]+)?",
        r"(?:dir?|decir(?:le)?|recuerda|recordar(?:le)?|avisar?|informar?)\s+(?:al?|a\s+la)\s+[\w]+",
        r"(?:скажи|напомни|сообщи|передай|предупреди|спроси)(?:те)?\s+(?:пожалуйста,?\s+)?[а-яё]+(?:\s+пользовател[а-яё]+)?",
        r"(?:rappell?e[rz]?|dis|dites|informe[rz]?|pr[ée]viens|avertis|demande)"
        rf"(?:-(?:moi|lui|leur|nous)\b|\s+(?:(?:à|au|aux)\s+)?(?:l['’]|les?\s+|la\s+)?[{L}]+)",
        rf"(?:lembre|diga|avise|informe|pergunte)(?:-(?:me|lhe|nos)\b|\s+(?:aos?|à|os?|as?)\s+[{L}]+)",
        rf"(?:(?:ricorda|avvisa|informa|chiedi)(?:mi|gli)?|di['’])\s+(?:(?:al)?l['’]|(?:al|alla|il|la|gli|a)\s+)?[{L}]+",
    )
)
TELL = re.compile(
    rf"\b(?:(?P<telling>{TELLING})\s+(?:{PERSON})(?:\s+know\b)?"
    rf"|(?:give|send|drop|leave)\s+(?:{PERSON})\s+an?\s+(?:[a-z]+\s+)?(?:{NOTE})\b"
    rf"|(?:{ASKING})\s+(?:{PERSON}|(?!yourself|myself)[a-zà-ÿ])"
    rf"|(?P<elsewhere>{ELSEWHERE}))|^\W*(?:please\s+|bitte\s+|and\s+)?(?P<reminder>{REMINDERS})\b",
    re.IGNORECASE,
)
QUESTION = re.compile(r"\W*(?:shall|should|may|can|could)\s+i\b|\W*(?:would|do|did|are|have)\s+you\b", re.IGNORECASE)
ASKS = re.compile(rf"\W{{0,3}}(?:(?:the|of|about|for|on|le|los|la)\s+)?(?:{LOOKED_UP})\b", re.IGNORECASE)
TO_DO_SOMETHING = re.compile(rf"(?:\s+(?!that\b)[{L}'’-]+){{0,4}}?,?\s+to\b", re.IGNORECASE)

# Commands to the agent. They end the talk before them: "Tell the user the total: count rows in signups".
WORKING = _any("""
    read open load fetch get check run execute query count compare list search look inspect parse scan download
    upload write update append save store insert delete remove clean move copy rename fix build test deploy restart
    pull push commit diff grep find verify summarise summarize extract compute calculate work collect convert
    continue resume finish start create draft edit review analyse analyze sort filter merge poll call use take go do
    put set add post book schedule mark log record try watch measure validate sync archive import export render
    generate select
    öffne lade hole hol prüfe prüf starte führe zähle vergleiche suche schreibe schreib aktualisiere speichere
    lösche kopiere berechne nutze verwende schau
    lee abre carga descarga comprueba revisa ejecuta consulta cuenta compara busca escribe actualiza guarda borra
    copia calcula usa suma
    прочитай открой проверь запусти найди сравни посчитай обнови запиши сохрани вызови скачай выполни посмотри
    lis ouvre télécharge vérifie lance exécute cherche compte écris enregistre supprime copie calcule utilise corrige
    fais leia abra baixe verifique consulte conte busque escreva atualize salve apague faça
    leggi apri scarica controlla esegui cerca conta confronta scrivi aggiorna salva cancella calcola fai
""")
# The same commands, addressed to itself: "Time to run backup_create again".
TO_ITSELF = re.compile(
    rf"\W*(?:please\s+)?(?:remember\s+to|(?:it['’]?s\s+)?time\s+to)\s+(?:{WORKING}|{TOOL_MARK})", re.IGNORECASE
)
# Other first words of a sentence that are not its subject.
NO_NOUN = _any("""
    if when whenever once until unless while because since as in on at for after before ensure confirm make see wait
    determine decide note keep retry
    wenn sobald falls ob stelle
    si cuando asegura
    если когда как убедись
    quand se quando
""")
SAME = r"(?:[^,;:]|(?<=\d),(?=\d))"  # within the same clause
# Phrases for something that is over.
CLOSED = _any("done_with finished_with all_done all_set job_done mission_accomplished fertig_mit listo_con готово")
# News: a subject, then what it is or was. With "must" or "should" it is a task.
SUBJECTS = _any("""
    the your my our his her their this that these those it he she they we i you there a an all everything
    der die das dein deine ihr ihre mein unser es wir ich du ein eine
    el los las tu su mi este esta ya alles
    твой твоя твои ваш ваша ваши мой этот эта все всё
    le les l['’] ton votre vos il seu sua
""")
BEING = (
    r"(?:\b(?:is|are|was|were|has|have|had|will|ist|sind|war|wurde|hat|haben|liegt|erledigt|fertig|está|están"
    r"|son|fue|ha|han|готов[аоы]?|был[аои]?|завершен[аоы]?|лежит|находится|доступ(?:ен|на|но|ны)"
    r"|(?-i:est)|sont|são|é|è|sono)\b|['’](?:s|re|ve)\b)"
)
DONE = r"(?:finished|failed|arrived|completed?)\b"
WELL = r"(?:now\s+)?(?:compiles|works|builds|passes)\b"
# Past tense. Searched after a subject only: in a command, such a word is a participle.
PAST = (
    r"\b(?:[a-z]{3,20}[a-z]ed|wrote|sent|made|ran|did|came|went|took|got|gave|found|showed|lost|left|kept|began|broke"
    r"|looks|seems|reads|says?|contains|ended|hieß|kam|ging|lief|brachte|fand)\b"
)
OUGHT = _any("""
    must should needs? (?:has|have|is|are)_to i_will i['’]ll you_will (?:task|job|todo|next_step)(?=_is_|:)
    muss müssen soll sollte
    debe tiene_que hay_que
    нужно надо должен должна
""")
# Without an article, the verb after the name distinguishes a noun from a command: "Report report.pdf is ready".
NEWS = re.compile(
    rf"[^\w{THING_MARK}{TOOL_MARK}]*(?:(?:(?:{SUBJECTS})\b|{THING_MARK})(?!.*\b(?:{OUGHT})\b)(?:{SAME}*{BEING}|\s+[^\s,;:]+\s{SAME}*{PAST})"
    rf"|{THING_MARK}+\s+{WELL}"
    rf"|{TOOL_MARK}+\s+(?:{DONE}|returned\b|ended\b|ran\b|found\b|wrote\b)(?!.*\b(?:{OUGHT})\b)"
    rf"|(?:{CLOSED})\b(?!\s*[:,])"
    r"|(?:i|we)\s+(?:[a-z]{2,20}ed|wrote|sent|made|put|ran|did)\b"
    rf"|(?!(?:{WORKING}|{NO_NOUN})\b)(?:[{L}]{{1,30}}\s+){{1,3}}{THING_MARK}+\s+(?:{BEING}|{DONE}))",
    re.IGNORECASE,
)
TO_THE_USER = re.compile(
    r"\b(?:you|your|yours|dein|deine|deinen|tu|tus|твой|твоя|твои|ваш|ваша|ваши|вам|тебе"
    r"|ton|votre|vos|seu|sua|tuo|tua)\b",
    re.IGNORECASE,
)
# A text that starts like a letter is one, to its end.
GREETINGS = _any("""
    hi hello hey dear good_morning good_evening great_news good_news congratulations just_so_you_know
    hallo guten_morgen liebe lieber
    hola buenos_días
    привет здравствуйте доброе_утро
    hooray hurray yay woohoo bonjour salut olá bom_dia ciao buongiorno 你好 您好
""")
GREETING = re.compile(rf"\W*(?:{GREETINGS})\b", re.IGNORECASE)
# With one of these, a tool is the means of telling, so there is work to do: "Remind the user through notify".
MEANS = re.compile(
    r"\b(?:with|via|through|using|by|mit|über|per|con|por|mediante|usando|через|помощью|avec|com|tramite)\s+"
    r"(?:(?:the|a|an|la|el|le|il|o)\s+)?[`\"'*]*"
    rf"{TOOL_MARK}|\({TOOL_MARK}+\)|{TOOL_MARK}[`\"']?\s*(?:で|を使|経由|を通)|(?:用|通过|以)\s*{TOOL_MARK}",
    re.IGNORECASE,
)
FILLERS = _any(
    "please then first also next finally and but to_do_so for_that bitte dann zuerst luego primero сначала потом затем "
    "puis ensuite d['’]abord depois primeiro poi prima"
)
HEADS = rf"[^\w\"“「«]{{0,8}}+(?:(?:{FILLERS})\W+){{0,3}}(?:re-?)?(?:{WORKING})\b"
WORKS = re.compile(HEADS, re.IGNORECASE)
BACK_TO_WORK = re.compile(
    rf"(?:[,;:—–→]|\b(?:and|then|but|first|und|dann|y|luego|и|потом|затем|сначала|et|puis|e|poi)\b){HEADS}"
    r"|\bbased\s+on\b|\b(?:computed|calculated|taken)\s+from\b|\b(?:after|by)\s+[a-z]{2,20}ing\b|\b(?:nachdem\s+du|después\s+de|tras|после\s+того)\b",
    re.IGNORECASE,
)
# After "remind the user to …" an "and open …" is still the user's work; only these address the agent again.
FIRST_WORK = re.compile(
    rf"(?:;|\b(?:but\s+first|first|before\s+that|zuerst|vorher|primero|antes|сначала|d['’]abord|primeiro|prima)\b){HEADS}",
    re.IGNORECASE,
)

# In Japanese the verb comes last, so the end of each clause decides: news, or telling without any work in it.
JAPANESE_NEWS = re.compile(r"(?:ました|でした|ています|です|あります)(?:[！\s]*$|[:：])")
JAPANESE_TALK = re.compile("伝え|知らせ|教え|思い出させ|リマインド|忘れ(?:ずに|ないで)")
JAPANESE_ERRAND = re.compile(r"よう(?:に)?\s*(?:伝え|リマインド|言)")  # work for someone else
JAPANESE_WORK = re.compile(
    "確認|読|調べ|取得|実行|開い|比較|集計|数え|要約|検索|更新|計算|保存|チェック|見て|使|たら|れば|なら"
)
JAPANESE_CLAUSE = re.compile(r"[^、。\n]+")
KANA = re.compile(r"[\u3040-\u30ff]")

# In Chinese the verb comes first, so the start of each clause decides: work or telling; news has its own words.
CHINESE_WORK = re.compile(
    r"\W*(?:请|先|再|然后|并)?(?:读|检查|查|打开|运行|执行|下载|统计|比较|对比|总结|更新|写|保存|搜索|计算|分析|整理|用|使用|通过"
    "|如果|若|等|把|将|从)"
)
CHINESE_TALK = re.compile("提醒|告诉|告知|转告|通知|别忘|不要忘|记得")
CHINESE_NEWS = re.compile("已|好了|完成|成功了|你的|您的")
CHINESE_ASKS = re.compile("多少|是否|哪些|什么|几|怎么|有没有")
CHINESE_CLAUSE = re.compile(r"[^，、；：。\n]+")
HAN = re.compile(r"[\u3400-\u9fff]")

# A tool of one word may be an ordinary word. It counts as the tool after a command or a means, in a list, or before
# arguments.
LEADS = _any("using with via through by in from the a an one and or then ask mit per über con por через avec com")
FOLLOWS = _any("with to for that tool and or if when mit um und con para y и")
TOOL_BEFORE = re.compile(rf"(?:^|[^{L}\s]|\n|\b(?:{LEADS}|{WORKING}))\s*$", re.IGNORECASE)
TOOL_AFTER = re.compile(rf"\s*(?:$|[^{L}\s]|(?:{FOLLOWS})\b)", re.IGNORECASE)
OWNER_BEFORE = re.compile(r"\b(?:my|your|his|her|their)\s+$", re.IGNORECASE)
OWNER_AFTER = re.compile(r"\s+(?:my|your|our|his|her|their|me|us|you)\b", re.IGNORECASE)

QUOTED = re.compile(r'"[^"\n]*"|“[^“”]*”|「[^「」]*」|«[^«»]*»')  # each stops at the next opening, to stay linear
ONE_PIECE = str.maketrans(".!?。！？\n", "       ")  # a quotation stays in the sentence that quotes it
ABBREVIATED = "".join(rf"(?<!\b{short})" for short in ("Dr", "Mr", "Mrs", "Ms", "Prof", "Hr", "Fr", "Sr", "Sra", "vs"))
SENTENCE_END = re.compile(rf"{ABBREVIATED}[.!?](?=\s)|[。！？\n]")


# ── The rule ────────────────────────────────────────────────────────────────────────────────────────────────────────


class BriefRefused(Invalid):
    """The agent could do nothing with this brief when it is woken."""

    code = "brief_refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A problem of a brief: an agent's booking is refused with it, people are only warned."""

    kind: Literal["names_nothing", "only_talks"]
    message: str  # to the agent, like the hint
    hint: str
    warning: str  # to a person


def check_brief(text: str, *, tools: Collection[str], tables: Collection[str] = ()) -> None:
    """Refuse a brief that names nothing to work with, or that only tells or reminds someone."""
    problem = find_problem(text, tools=tools, tables=tables)
    if problem is not None:
        raise BriefRefused(problem.message, field=FIELD, hint=problem.hint)


def find_problem(text: str, *, tools: Collection[str], tables: Collection[str] = ()) -> Problem | None:
    """Return the problem of a brief, or None."""
    marked = _mark(text, tools, tables)
    if not NAMED.search(marked):
        return _names_nothing(text, tools, tables)
    if not _is_todo(marked):
        return _only_talks(text, tools)
    return None


def named_tools(text: str, tools: Collection[str]) -> list[str]:
    """Return the tools that a text names, as an identifier or in its words, in the order of the text."""
    if not tools:
        return []
    by_letters = {_letters_of(tool): tool for tool in tools}
    found = _whole(map(_words_of, tools)).finditer(text)
    return list(dict.fromkeys(by_letters[_letters_of(each[0])] for each in found if _is_tool(each)))


def _letters_of(name: str) -> str:
    return re.sub(r"[ _.-]", "", name).casefold()


def _mark(text: str, tools: Collection[str], tables: Collection[str]) -> str:
    """Replace the names of things to work with by marks of the same length."""
    marked = text.translate({ord(THING_MARK): " ", ord(TOOL_MARK): " "})
    marked = THING.sub(_mark_thing, marked)
    if tools:
        marked = _whole(map(_words_of, tools)).sub(_mark_tool, marked)
    if tables:
        marked = _whole(map(re.escape, tables)).sub(lambda found: THING_MARK * len(found[0]), marked)
    return marked


def _whole(patterns: Iterable[str]) -> re.Pattern[str]:
    either = "|".join(sorted(patterns, key=len, reverse=True))
    return re.compile(rf"(?<![{L}-])(?:{either})(?![{L}]|-[{L}])", re.IGNORECASE)


def _words_of(tool: str) -> str:
    """Return the pattern of a tool's name: the identifier or its words, `read_file` or "read file"."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", tool)
    return rf"{re.escape(tool)}|{'[ _.-]{0,2}'.join(words)}" if len(words) > 1 else re.escape(tool)


def _mark_thing(found: re.Match[str]) -> str:
    name = found[0].rstrip(".,;:!?)'\"`")  # punctuation of the sentence is not part of the path
    return THING_MARK * len(name) + found[0][len(name) :]


def _mark_tool(found: re.Match[str]) -> str:
    return TOOL_MARK * len(found[0]) if _is_tool(found) else found[0]


def _is_tool(found: re.Match[str]) -> bool:
    """Return whether a name stands for a tool; it may be an ordinary word: "notify your bank", "buy shell pasta"."""
    if not found[0].isalpha():
        return True
    before = found.string[max(0, found.start() - 24) : found.start()]
    is_tool = TOOL_BEFORE.search(before) or TOOL_AFTER.match(found.string, found.end())
    return bool(is_tool) and not (OWNER_BEFORE.search(before) or OWNER_AFTER.match(found.string, found.end()))


def _is_todo(marked: str) -> bool:
    """Return whether a name is outside of talk, or work follows the talk that names it."""
    if GREETING.match(marked):
        return False
    for sentence in SENTENCE_END.split(QUOTED.sub(lambda found: found[0].translate(ONE_PIECE), marked)):
        work = _without_talk(sentence)
        if NAMED.search(work) or WORKS.match(work):
            return True
        if NEWS.match(sentence) and TO_THE_USER.search(sentence):
            return False  # a letter to the user: the rest of it is for the user too
    return False


def _without_talk(sentence: str) -> str:
    """Return a sentence without the messages, reminders and news in it."""
    if KANA.search(sentence):
        return " ".join(clause for clause in JAPANESE_CLAUSE.findall(sentence) if not _is_japanese_talk(clause))
    if HAN.search(sentence):
        return " ".join(clause for clause in CHINESE_CLAUSE.findall(sentence) if not _is_chinese_talk(clause))
    if news := NEWS.match(sentence):
        back = None if TO_THE_USER.search(sentence) else BACK_TO_WORK.search(sentence, news.end())
        return sentence[back.start() :].lstrip(",;:—–→ ") if back else ""
    tell = TELL.search(sentence)
    if QUESTION.match(sentence):
        return ""
    if tell is None or MEANS.search(sentence):
        return sentence
    if TO_ITSELF.match(sentence) and not TO_THE_USER.search(sentence):
        return sentence
    if (tell["telling"] or tell["elsewhere"]) and ASKS.match(sentence, tell.end()):
        return sentence
    turn = FIRST_WORK if tell["reminder"] or TO_DO_SOMETHING.match(sentence, tell.end()) else BACK_TO_WORK
    back = turn.search(sentence, tell.end())
    return sentence[: tell.start()] + (sentence[back.start() :] if back else "")


def _is_japanese_talk(clause: str) -> bool:
    if JAPANESE_NEWS.search(clause) or JAPANESE_ERRAND.search(clause):
        return True
    return bool(JAPANESE_TALK.search(clause)) and not JAPANESE_WORK.search(clause) and not MEANS.search(clause)


def _is_chinese_talk(clause: str) -> bool:
    if CHINESE_WORK.match(clause) or CHINESE_ASKS.search(clause):
        return False
    return bool(CHINESE_NEWS.search(clause) or (CHINESE_TALK.search(clause) and not MEANS.search(clause)))


def _names_nothing(text: str, tools: Collection[str], tables: Collection[str]) -> Problem:
    unknown = UNKNOWN_NAME.search(text)
    return Problem(
        kind="names_nothing",
        message=(
            "The brief names nothing to work with: no tool you have, no file path, no URL, no table or view of yours."
            + (f" {shorten(unknown[0], 60)!r} is none of these." if unknown else "")
            + f" Your tools: {_listed(tools)}; tables and views: {_listed(tables)}."
        ),
        hint=f"Write a task for yourself that names what to use, such as {GOOD_FORM}"
        + (f" {_how_to_tell(tools)}" if any(talk.search(text) for talk in (TELL, JAPANESE_TALK, CHINESE_TALK)) else ""),
        warning="The text names no tool, file path, URL, table or view, so the agent may not know what to do. Name "
        f"what it should use, such as {GOOD_FORM}",
    )


def _only_talks(text: str, tools: Collection[str]) -> Problem:
    return Problem(
        kind="only_talks",
        message=f"The brief {shorten(text, 60)!r} only tells or reminds someone; it is not a task for you.",
        hint=f"Say what to do when you wake, such as {GOOD_FORM} {_how_to_tell(tools)}",
        warning="The text only tells or reminds someone, but the agent reads it as its own task when it wakes. Say "
        f"what it should do, such as {NOTIFY_FORM if 'notify' in tools else GOOD_FORM}",
    )


def _how_to_tell(tools: Collection[str]) -> str:
    if "notify" in tools:
        return f"To send a message at that time, name the tool: {NOTIFY_FORM}"
    return f"A brief that only sends a message, {NOTIFY_FORM}, needs the tool notify, which you do not have."


def _listed(names: Collection[str]) -> str:
    shown = sorted(names)[:MAX_NAMES_SHOWN]
    return ", ".join(shown) + (", …" if len(names) > len(shown) else "") if shown else "none"
