"""Draw the icons of the installed page, web/public/*.png, from icon.svg.

    .venv/bin/uv pip install --python .venv pillow && .venv/bin/python scripts/icons.py

Pillow reduces them to 64 colours, which nobody sees and which takes 35 kB off every wheel.
"""

import asyncio
import io
import sys
from pathlib import Path

from PIL import Image
from playwright.async_api import Browser, async_playwright

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/support"))

from browser.visits import find_chromium

PUBLIC = Path(__file__).parent.parent / "web" / "public"
COLOURS = 64
GREEN = "#2f6f62"  # the background of icon.svg
# Name, size, and whether the background fills it: systems cut such an icon to their own form, so it is drawn smaller.
ICONS = [
    ("icon-192.png", 192, False),
    ("icon-512.png", 512, False),
    ("icon-maskable-512.png", 512, True),
    ("apple-touch-icon.png", 180, True),
]


async def draw(browser: Browser, name: str, size: int, is_filled: bool) -> None:
    """Draw one icon."""
    page = await browser.new_page(viewport={"width": size, "height": size})
    inset, ground = (size // 10, GREEN) if is_filled else (0, "transparent")
    style = f"margin:0;padding:{inset}px;box-sizing:border-box;background:{ground}"
    drawing = (PUBLIC / "icon.svg").read_text(encoding="utf-8").replace("<svg ", '<svg width="100%" height="100%" ')
    await page.set_content(f'<body style="{style};width:{size}px;height:{size}px">{drawing}</body>')
    drawn = Image.open(io.BytesIO(await page.screenshot(omit_background=True))).convert("RGBA")
    drawn.quantize(COLOURS, method=Image.Quantize.FASTOCTREE).save(PUBLIC / name, optimize=True)
    await page.close()


async def main() -> None:
    """Draw all icons."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_chromium(), chromium_sandbox=False)
        for icon in ICONS:
            await draw(browser, *icon)
        await browser.close()


asyncio.run(main())
