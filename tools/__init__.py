"""What makes and checks the documentation, the wheel and the page's libraries."""
