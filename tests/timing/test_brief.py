import json
from pathlib import Path
from time import process_time

import pytest

from wakeful.core.errors import Invalid
from wakeful.timing.brief import GOOD_FORM, NOTIFY_FORM, BriefRefused, check_brief, find_problem

TOOLS = ("read_file", "write_file", "fetch_url", "shell", "notify", "db_query", "schedule_recall")
TABLES = ("signups", "price_history", "open_goals")
NO_NOTIFY = tuple(tool for tool in TOOLS if tool != "notify")
LABELLED = Path(__file__).resolve().parents[1] / "data" / "briefs.jsonl"

TODOS = (
    # paths
    "Read /tmp/build.log with filesystem. If errors, read last 50 lines and report.",
    "Sort ~/Downloads by month.",
    "Continue in ../notes/plan",
    "Open C:\\Program Files\\App\\server log.txt and look for crashes.",
    "Copy \\\\nas01\\media\\new to the archive.",
    "Empty %TEMP%\\render and $HOME/.cache/render.",
    "Delete every *.tmp that is older than a week.",
    "Summarise 'Minutes of May.docx' in five lines.",
    "Compress logs/ and keep three copies.",
    "Rotate whatever is in /var/log/nginx.",
    "Fix the typo in src/wakeful/domain, third line.",
    "Move reports/* to the archive.",
    "Look into deploy\\release for leftovers.",
    "Add a line to README about the new flag.",
    "Bump the base image in Dockerfile.",
    "Check .env for the new key.",
    "Compile main.c and note the warnings.",
    "Run scripts/nightly and keep what it prints.",
    # URLs
    "See whether https://ci.example.com/job/77 is green; if it is red, restart it once.",
    "Poll localhost:8080/health until it answers.",
    "Look at example.com for a new release.",
    "Get 10.0.0.7:9100/metrics and keep the load.",
    "Take the newest file from s3://backups/daily and test that it unpacks.",
    "Look up the price on shop.example.de/item/3.",
    # tools and tables
    "read_file the plan and do its next step.",
    "Fetch url of the weather page from the last message, note the wind.",
    "With the shell, free some space.",
    "Do a db query for yesterday's entries.",
    "Read-file the changelog from the last answer and continue.",
    "count signups since Monday",
    "Refresh price_history, then work out the weekly mean.",
    "Go through open_goals; whatever has no date gets one.",
    "notify(title='Tea', body='It has brewed four minutes.')",
    "NOTIFY: the washing machine is done.",
    "Notify the user that the oven timer is up.",
    "Send one notify: leave for the airport now.",
    # telling that takes work, or names its means
    "Tell the user whether /tmp/done exists.",
    "Tell the user what https://status.example.com says about the outage.",
    "Let the user know how many rows signups has.",
    "If /tmp/build.log shows errors, tell the user.",
    "Once https://example.com/tickets sells again, ping me.",
    "Read report.md and tell the user what changed.",
    "Tell the user that it is time to leave, using notify.",
    "Remind the user with notify to take the bread out.",
    "Remind the user of the appointment via the notify tool.",
    "Tell the user how it went. First read ./out/result.json.",
    "Tell the user the total, but first load https://example.com/cart.json.",
    "Tell the user the mean of this week: query price_history.",
    "Tell the user that the tests are through and append the time to runs.csv.",
    "Inform the team about the outage after reading /var/log/outage.log.",
    "Remind yourself of the style in docs/style.md, then go on with chapter 3.",
    "Ask read_file for the last lines.",
    # other moods, more than one sentence
    "You should read /tmp/build.log and list the warnings.",
    "I will check https://example.com/queue and book the next look.",
    "The build log must be fetched from /tmp/build.log.",
    "The build log is /tmp/build.log. Read its last 50 lines and list the warnings.",
    "The plan is in PLAN.md: do the next step.",
    "Your task is to compare a.csv with b.csv.",
    "Hourly look at https://example.com/board, three newest posts.",
    "Could you open notes.txt and tidy it up?",
    "Need to re-run tests/unit and note what fails.",
    "By now the export should be in /data/export; unpack it.",
    "Please don't tell anyone yet. Compare old.json with new.json.",
    # other languages
    "Lies /tmp/build.log und sag dem Nutzer, was fehlt.",
    "Sag dem Nutzer, wie viele Zeilen signups hat.",
    "Mit shell den Speicherplatz prüfen und bei unter 10 GB aufräumen.",
    "Erinnere mich mit notify an den Termin.",
    "Die Datei notizen.md lesen, dann den nächsten Punkt angehen.",
    "Abre notas.md y termina la lista.",
    "Dile al usuario cuántas filas tiene signups.",
    "Recuérdale al usuario con notify que saque la basura.",
    "Lis rapport.md et corrige les fautes.",
    "/tmp/build.log を読んで、エラーがあればユーザーに伝える。",
    "shellで掃除する。",
    "報告.pdfを要約する。",
    "Wait until https://ci.example.com/builds/12 is green, then merge.",
    "Ensure /etc/hosts still has the entry for the NAS.",
    "Tell the user which open_goals are overdue.",
    "Let the user know once the certificate at shop.example.net is renewed.",
    "Give the user a list of the overdue rows in open_goals.",
    "Send the user the three newest entries of price_history.",
    "All failed rows in signups go through once more.",
    "Tell the user the weekly mean, computed from price_history.",
    "This is the third try: rebuild /srv/site and stop if it fails again.",
    "Prüfe unter www.zug.example/re5, ob er fährt.",
    "Wenn /tmp/fertig existiert, melde es mit notify.",
    "Ejecuta shell con `uptime` y guarda el resultado.",
    "Если https://site.example.ru не отвечает, сообщи пользователю через notify.",
    "Открой example.ru/raspisanie и выпиши рейсы.",
    "Скажи пользователю, сколько строк в signups.",
    "notify でユーザーに伝える: 会議が始まります。",
    "Reminder to self: compare /srv/a and /srv/b once more.",
    "Time to run read_file on notes.txt again; skip it if nothing changed.",
    "Remember to check notes.txt for new lines.",
    "docker/Dockerfile.slim: pin the image, then build it.",
    "Merge strings/fr.xliff into one list.",
    "All failed rows in signups: send them through again.",
    # French
    "Dis à l'utilisateur combien de lignes a signups.",
    "Rappelle à l'utilisateur avec notify de sortir le pain.",
    "Lis /tmp/build.log puis préviens l'utilisateur s'il y a des erreurs.",
    "Si https://exemple.fr ne répond plus, préviens-moi via notify.",
    "Vérifie si rapport.pdf est là, sinon attends une heure.",
    "L'utilisateur veut un résumé : lis notes.md et écris resume.md.",
    # Portuguese
    "Leia /tmp/build.log e diga ao usuário o que falta.",
    "Diga ao usuário quantas linhas tem signups.",
    "Lembre o usuário com notify de tirar o lixo.",
    "Abra notas.md e termine a lista.",
    "Verifique se relatorio.pdf já existe.",
    # Italian
    "Leggi /tmp/build.log e di' all'utente cosa manca.",
    "Di' all'utente quante righe ha signups.",
    "Ricorda all'utente con notify di buttare la spazzatura.",
    "Apri note.md e finisci la lista.",
    "Controlla se https://esempio.eu/orari è cambiato.",
    # Chinese
    "读取 /tmp/build.log，如果有错误就告诉用户。",
    "用notify提醒用户吃药。",
    "告诉用户 signups 有多少行。",
    "检查 https://example.com/queue 是否为空，然后通知用户。",
    "总结报告.pdf，保存到 summary.md。",
    "通过 notify 通知团队：会议开始了。",
    # about the user, and still work
    "The user wants a summary of report.pdf: write summary.md.",
    "The user should find a summary in out.md; write it from report.pdf.",
    "Encourage the user with notify to drink.",
    "Main.rs must compile again: fix it.",
)

NAMELESS = (
    "Check the log again.",
    "Read the file and report.",
    "Look at the website once more.",
    "Query the database for new rows.",
    "Continue where you left off.",
    "Ping me when it is done.",
    "Remind the user to stretch.",
    "Meet at 10.30 a.m. and/or 24/7, e.g. on 3/4/2026.",
    "Upgrade to v3.12.4, i.e. the newest.",
    "Weigh price/quality and input/output of the TCP/IP and A/B plans.",
    "Find a course on Node.js, Vue.js and ASP.NET.",
    "Write to anna@example.com.",
    "Pay 5 €/month or 60 €/year.",
    "Buy shellfish, in a nutshell: two kilos.",
    "Try my_shell or shell_exec, or read_files.",
    "Go through all_signups and signups_old.",
    "Use slack_post_message for the release.",
    "Work w/ Tom on the client/server talk.",
    "Notify your bank about the new address.",
    "Don't forget to notify your landlord.",
    "Prüfe das noch einmal, d.h. z.B. morgen.",
    "Mach weiter wie besprochen.",
    "Sigue con lo de antes, por favor.",
    "Continue comme la dernière fois.",
    "続きをやる。",
    "Buy shell pasta on the way.",
    "Plan how to notify customers.",
    "Сделай то, о чём договорились, и/или спроси 7/8.",
    "Check that it works.Then tell me.",
    "…",
)

TALK = (
    "Tell the user that report.md is ready.",
    "Tell the user report.md is ready.",
    "Please tell the user that https://example.com is up again.",
    "Remind the user to run read_file.",
    "Remind the user to open report.pdf and read chapter 2.",
    "Remind me about notes.txt.",
    "Remind everyone that the slides are at https://example.com/slides.",
    "Remind Dr. Meyer that report.pdf is due.",
    "At 5 pm, remind the user to send invoice.pdf.",
    "When two hours have passed, tell the user that report.pdf is due.",
    "Let the user know that /tmp/build.log has been deleted.",
    "Let me know about report.pdf.",
    "Inform Lisa that the numbers are in signups.",
    "Ask the user whether report.pdf is fine.",
    "Ask the user to check https://example.com/form.",
    "Send the user a message that report.pdf is done.",
    "Give the user a heads-up that https://example.com goes down tonight.",
    "Ping me that build.log is there.",
    'Tell the user: "The export is done. Open https://example.com/x to see it."',
    "You should tell the user that report.pdf is ready.",
    "Don't forget to sign contract.pdf!",
    "Please do not forget to open https://example.com/form before noon.",
    "Reminder: hand in thesis.pdf by Friday.",
    "Heads-up: https://example.com is down for repairs.",
    "Time to submit report.pdf.",
    "Your report.pdf is ready.",
    "Your export is ready at https://example.com/x.zip. Open it soon.",
    "The backup in /mnt/backup was finished at noon.",
    "report.pdf is ready!",
    "https://example.com is up again.",
    "It's done: report.pdf.",
    "Here is the link you wanted: https://example.com/a",
    "Hi Jonas, please look at report.pdf today. See you!",
    "Good morning! The agenda is in agenda.md.",
    "Sag dem Nutzer, dass report.pdf fertig ist.",
    "Bitte erinnere mich daran, report.pdf zu lesen.",
    "Den Nutzer daran erinnern, dass report.pdf fertig ist.",
    "Dein Bericht liegt in bericht.pdf.",
    "Vergiss nicht, vertrag.pdf zu unterschreiben.",
    "Dile al usuario que informe.pdf está listo.",
    "Recuérdame abrir https://example.com/form.",
    "Avisa al usuario de que informe.pdf ya está.",
    "Tu informe.pdf está listo.",
    "report.pdf ができたとユーザーに伝える。",
    "report.pdf が完成しました。",
    "ユーザーに https://example.com のことを教えて。",
    "I have used shell to restart the server and all is well.",
    "I wrote the summary to summary.md, have a look when you can.",
    "Everything was restarted with shell.",
    "The export is finished and lies at /tmp/export.csv.",
    "Backup to /mnt/backup completed.",
    "Would you like me to go on with report.pdf?",
    "Great news: your order is out, track it at https://example.com/1.",
    "Alles erledigt, das Ergebnis liegt in /srv/out.csv.",
    "Ya está listo resumen.md, puedes leerlo.",
    "Отчёт report_may.html готов, можно смотреть.",
    "Скажи пользователю, что отчёт лежит в /tmp/report.pdf.",
    "Не забудь подписать dogovor.pdf.",
    "ユーザーに report.pdf を読むようリマインドする。",
    "資料は /srv/docs にあります。",
    "Please remember to sign your contract at https://example.com/sign, thanks!",
    "The import last night wrote 1,204 rows to signups.",
    "Finished with draft.md, it is much shorter.",
    "read_file returned nothing at noon.",
    "Just letting you know that old.zip is gone.",
    "Should I go on with read_file?",
    # for the user to do
    "The user should read report.pdf before Friday.",
    "The user needs to sign contract.pdf.",
    "Our team must look at https://example.com/board today.",
    "Encourage the user to open notes.txt.",
    "Urge the customer to sign contract.pdf.",
    # news without a task
    "Hooray, main.rs compiles again!",
    "main.rs compiles again.",
    "Yay! The tests in tests/unit pass.",
    # French
    "Rappelle à l'utilisateur de lire rapport.pdf.",
    "Rappelle-moi d'ouvrir https://exemple.fr/formulaire.",
    "Dis à l'utilisateur que rapport.pdf est prêt.",
    "N'oublie pas de signer contrat.pdf !",
    "Préviens Marie que rapport.pdf est prêt.",
    "Ton rapport.pdf est prêt.",
    "Bonjour Paul, ton export est dans export.csv.",
    # Portuguese
    "Lembre o usuário de enviar fatura.pdf.",
    "Não se esqueça de assinar contrato.pdf.",
    "Avise a equipe que relatorio.pdf está pronto.",
    "Seu relatorio.pdf está pronto.",
    # Italian
    "Ricorda all'utente di leggere rapporto.pdf.",
    "Non dimenticare di firmare contratto.pdf.",
    "Avvisa l'utente che rapporto.pdf è pronto.",
    "Il tuo rapporto.pdf è pronto.",
    # Chinese
    "提醒用户查看 report.pdf。",
    "别忘了签署 contract.pdf！",
    "告诉用户 report.pdf 已经准备好了。",
    "report.pdf 已完成。",
    "你的报告在 /srv/report.pdf。",
)


def problem_of(text):
    return find_problem(text, tools=TOOLS, tables=TABLES)


@pytest.mark.parametrize("text", TODOS)
def test_a_todo_that_names_what_to_work_with_passes(text):
    assert problem_of(text) is None


@pytest.mark.parametrize("text", NAMELESS)
def test_a_brief_that_names_nothing_has_that_problem(text):
    assert problem_of(text).kind == "names_nothing"


@pytest.mark.parametrize("text", TALK)
def test_a_brief_that_only_talks_has_that_problem(text):
    assert problem_of(text).kind == "only_talks"


def test_on_the_labelled_briefs_refusals_have_the_promised_precision_and_recall():
    rows = [json.loads(line) for line in LABELLED.read_text("utf-8").splitlines()]
    refused = [find_problem(row["brief"], tools=row["tools"], tables=row["tables"]) is not None for row in rows]
    bad = [row["label"] == "bad" for row in rows]
    rightly = sum(map(min, refused, bad))
    assert rightly / sum(refused) >= 0.97
    assert rightly / sum(bad) >= 0.95


def test_a_refusal_names_the_field_what_is_missing_and_a_good_form():
    with pytest.raises(BriefRefused) as refusal:
        check_brief("Use slack_post for it.", tools=("read_file",), tables=("signups",))
    error = refusal.value
    assert isinstance(error, Invalid)
    assert (error.code, error.field) == ("brief_refused", "additional_context_message")
    for part in ("no tool you have", "no file path", "no URL", "'slack_post' is none", "read_file", "signups"):
        assert part in error.message
    assert "Read /tmp/build.log with read_file" in error.hint


def test_a_good_brief_is_not_refused():
    check_brief("Read /tmp/build.log with read_file.", tools=TOOLS)


@pytest.mark.parametrize(
    "text", ["Tell the user that report.md is ready.", "Remind the user to stretch.", "水を飲むよう伝える。"]
)
def test_the_hint_for_a_chat_reminder_shows_the_notify_form(text):
    assert "'Use notify to tell the user: " in problem_of(text).hint


def test_without_the_notify_tool_the_hint_says_that_its_form_is_not_open():
    assert "which you do not have" in find_problem("Tell the user that report.md is ready.", tools=NO_NOTIFY).hint


def test_every_form_that_a_hint_shows_is_itself_a_good_brief():
    for shown in (GOOD_FORM, NOTIFY_FORM):
        assert problem_of(shown.strip("'")) is None


def test_a_tool_is_known_by_its_identifier_and_by_its_words():
    for text in ("listOpenIssues for acme", "List open issues for acme", "Use LIST_OPEN_ISSUES"):
        assert find_problem(text, tools=["listOpenIssues"]) is None


def test_an_agent_without_tools_and_tables_can_still_name_a_path():
    assert find_problem("Read /tmp/a.log.", tools=()) is None
    assert find_problem("Read it.", tools=()).kind == "names_nothing"


@pytest.mark.parametrize(
    "piece",
    [
        *("a", "a.", "a/", "\\", "-", "1.", ", ", "“", '"', "です", " ", "\n", ". "),
        *("tell the ", "and then ", "the user is ", "must ", "notify ", "read_", "sag dem ", "*."),
        *("提醒用户", "rappelle à l'"),
    ],
)
@pytest.mark.parametrize("opening", ["", "Tell the user that report.md "])
def test_time_grows_with_the_text_and_no_faster(opening, piece):
    def seconds(length):
        text = opening + piece * (length // len(piece))
        started = process_time()
        problem_of(text)
        return process_time() - started

    # Eight times the text: a quadratic pattern takes 64 times as long. The floor keeps noise out of the ratio.
    assert seconds(32_000) <= 24 * max(seconds(4_000), 0.01)
