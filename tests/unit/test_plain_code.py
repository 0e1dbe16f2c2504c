"""`make lint` finds dense assignments, loops whose variable says nothing, and formatted CEL."""

import pytest

from hack.plain import BUILDER, ROOT, findings, formatted_cel, repeated


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("a, b = 1, 2", [1]),
        ("x = 1\nself.a, self.b = x, 2", [2]),
        ("a, b = b, a", []),
        ("self.a, other = other, self.a", []),
        ("a, b = pair", []),
        ("first, *rest = 1, *others", []),
        ("a, (b, c) = 1, pair", [1]),
        ("for one in many:\n    pass", [1]),
        ("for one, two in many:\n    pass", [1]),
        ("[one for one in many]", [1]),
        ("sorted(many, key=lambda one: one.name)", [1]),
        ("for worker in workers:\n    pass", []),
        ("call(\n    *(1, 2),\n    3,\n)", [2]),
        ("call(*[1, 2])", [1]),
        ("call(*many, (1, 2))", []),
    ],
)
def test_planted_code_is_found_with_its_line(code, lines):
    assert [line for line, _ in findings(code)] == lines


def test_a_class_name_of_two_modules_is_found():
    codes = ["class Target: ...", "class Target: ...", "class Other: ...", "class _Other: ..."]
    assert list(repeated(codes)) == ["Other", "Target"]
    assert list(repeated(codes[1:3])) == []
    assert list(repeated(["class BastionStatus: ..."] * 2)) == []


@pytest.mark.parametrize(
    ("code", "is_found"),
    [
        ("Expr(f'object.{name}')", True),
        ("Expr(f'size({name}) > 3')", True),
        ("Expr('object.' + name)", True),
        ("Expr('{} == {}'.format(first, other))", True),
        ("rule = f'has(self.{name}) || {other}'", True),
        ("rule = 'self.%s == oldSelf.%s' % (name, name)", True),
        ("condition = ' && '.join(conditions)", True),
        ("x = {'expression': f'{name} == 3'}", True),
        ("x = {'rule': name + ' in [1, 2]'}", True),
        ("rule = f'({first}) && ({other})'", True),
        ("text = f'uninstall {name} && install {name}'", False),
        ("Expr(f'{name}{depth}')", False),
        ("Expr('object.metadata').field(name)", False),
        ("x = {'rule': 'self == oldSelf', 'message': f'{name} is immutable'}", False),
        ("x = {'expression': found.equals(3).text}", False),
        ("text = f'the object {name} has no size'", False),
        ("total = first + other", False),
    ],
)
def test_formatted_cel_is_found(code, is_found):
    assert bool(list(formatted_cel(code))) is is_found


def test_only_the_builder_of_expressions_formats_them():
    assert list(formatted_cel((ROOT / BUILDER).read_text()))
