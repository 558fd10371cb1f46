from rest_framework.pagination import PageNumberPagination


class Pages(PageNumberPagination):
    """Every list of the API is paged: `?page=2&page_size=100`."""

    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 200
    invalid_page_message = "There is no such page; the field count says how many rows there are."
