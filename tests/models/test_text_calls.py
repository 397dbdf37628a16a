from time import process_time

import pytest

from wakeful.models.rules import has_text_call

TOOLS = ("read_file", "list_files", "run_command", "db_query", "fetch_url")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('<tool_call>\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n</tool_call>', id="Qwen"),
        pytest.param('<tool_call>{"name": "read_file", "arguments": {"path": "a.txt"}}', id="without an end"),
        pytest.param(
            "<tool_call>\n<function=read_file>\n<parameter=path>\na.txt\n</parameter>\n</function>\n</tool_call>",
            id="Qwen coder",
        ),
        pytest.param(
            "<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a.txt</arg_value>\n</tool_call>", id="GLM"
        ),
        pytest.param('<function=read_file>{"path": "a.txt"}</function>', id="Llama"),
        pytest.param(
            '<|python_tag|>{"type": "function", "name": "read_file", "parameters": {"path": "a.txt"}}<|eom_id|>',
            id="Llama 3.1",
        ),
        pytest.param('[read_file(path="a.txt")]', id="Llama 4"),
        pytest.param('<|tool_call_start|>[read_file(path="a.txt")]<|tool_call_end|>', id="LFM"),
        pytest.param('[TOOL_CALLS][{"name": "read_file", "arguments": {"path": "a.txt"}}]', id="Mistral"),
        pytest.param('[TOOL_CALLS]read_file[ARGS]{"path": "a.txt"}', id="newer Mistral"),
        pytest.param('[TOOL_CALLS]read_file{"path": "a.txt"}', id="Mistral without ARGS"),
        pytest.param(
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file\n```json\n"
            '{"path": "a.txt"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
            id="DeepSeek",
        ),
        pytest.param(
            '<function_calls><invoke name="read_file"><parameter name="path">a.txt</parameter></invoke>'
            "</function_calls>",
            id="invoke",
        ),
        pytest.param('```json\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n```', id="a fence"),
        pytest.param('read_file(\n    path="a.txt",\n)', id="Python on several lines"),
        pytest.param('```tool_code\nprint(read_file(path="a.txt"))\n```', id="Gemma"),
        pytest.param('{"name": "read_file", "arguments": {"path": "a.txt"}}', id="bare"),
        pytest.param('{"tool": "read_file", "args": {"path": "a.txt"}}', id="other keys"),
        pytest.param(
            '{"function": {"name": "read_file", "arguments": "{\\"path\\": \\"a.txt\\"}"}, "type": "function"}',
            id="as in the API",
        ),
        pytest.param(
            '{"tool_calls": [{"function": {"name": "read_file", "arguments": {"path": "a.txt"}}}]}', id="a list of them"
        ),
    ],
)
def test_a_call_in_the_form_of_a_model_is_recognised(text):
    assert has_text_call(text, TOOLS)
    assert has_text_call(f"I will read it now.\n\n{text}\n", TOOLS)


@pytest.mark.parametrize(
    "text",
    [
        "The file is a.txt, and read_file reads it.",
        '{"name": "Ada", "arguments": {"for": "the job"}}',
        '```json\n{"name": "wakeful", "version": "0.2", "dependencies": {}}\n```',
        'Call it as `read_file(path="a.txt")` or `<tool_call>`.',
        "I called read_file (it has 3 lines) and list_files().x",
        "First I looked with list_files(), then with read_file(path='a.txt').",
        'Use `{"name": "read_file", "arguments": {}}` in your template.',
        '[{"id": 1, "name": "Ada"}, {"id": 2, "name": "Grace"}]',
        "| tool | what |\n|---|---|\n| read_file | reads a file |",
        "def fetch(url):\n    return get(url)",
        "read_file(path='a.txt') reads a file.",
        "list_files() lists them",
        "The tag <tool_call> begins a call.",
        '[{"name": "read_file", "description": "reads a file", "parameters": {}}]',
        "",
    ],
)
def test_other_text_has_no_call(text):
    assert not has_text_call(text, TOOLS)


def test_a_marked_call_of_an_unknown_tool_is_recognised_and_one_in_bare_json_is_not():
    assert has_text_call('<tool_call>{"name": "send_mail", "arguments": {}}</tool_call>', TOOLS)
    assert not has_text_call('{"name": "send_mail", "arguments": {}}', TOOLS)


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "{",
            "[",
            "`",
            "<function=a>",
            "read_file(",
            '{"a":',
            "<tool_call>a ",
            "<tool_call>a<arg_key>",
            "read_file()\n",
        ),
        *("<function=a><parameter=b>", "<invoke name='a'>", "<arg_key>a</arg_key><arg_value>", "[TOOL_CALLS]a", "{}\n"),
        *("<function=a></function>", "<tool_call>a<arg_key>b</arg_value>", '"name":"a"', '"name":  ', "<tool_call> "),
        *("a(", "a(\n", "print(", "<|a|>", "_", "read_file(a=", "read_file(   ", "[TOOL_CALLS] ", "<invoke "),
    ],
)
def test_a_hostile_text_costs_little(unit):
    text = unit * (200_000 // len(unit))
    began = process_time()
    has_text_call(text, TOOLS)
    assert process_time() - began < 1
